// Package depot is a container engine in a file: a server of Docker's API whose containers are entries. Only the search has it.
//
// It keeps the rules of an engine on which vmctl relies: names are unique, labels stay, what a container uses is not removed, and
// a volume that a container mounts and that does not exist is made without labels.
package depot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"vmctl/providers"
)

// Depots serves the engines of many machines, one request at a time.
type Depots struct {
	mu      sync.Mutex
	strikes []string
	touched []string // requests that would have changed a container of others
}

// Set lets the next request of each name fail: a name is one of Requests, or "lost " and one of these: the engine does what
// it is asked to do, and its answer is lost.
func (d *Depots) Set(strikes []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.strikes = strikes
}

// Touched lists the requests that would have changed a container of others.
func (d *Depots) Touched() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.touched
}

// struck reports whether a request of a name fails, and takes that back. The caller holds the lock.
func (d *Depots) struck(name string) bool {
	for i, strike := range d.strikes {
		if strike == name {
			d.strikes = append(d.strikes[:i:i], d.strikes[i+1:]...)
			return true
		}
	}
	return false
}

// Dial connects to the engine in a file.
func (d *Depots) Dial(path string) net.Conn {
	near, far := net.Pipe()
	s := &http.Server{Handler: &server{depots: d, path: path}} //nolint:gosec // nobody else connects
	s.SetKeepAlivesEnabled(false)                              // a connection would outlive its machine
	go func() { _ = s.Serve(&listener{conn: far}) }()          //nolint:errcheck // it ends at once, and its connection with the other end
	return near
}

// listener accepts one connection.
type listener struct{ conn net.Conn }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	if l.conn == nil {
		return nil, errors.New("there is one connection only")
	}
	conn := l.conn
	l.conn = nil
	return conn, nil
}

// Close implements net.Listener.
func (*listener) Close() error { return nil }

// Addr implements net.Listener.
func (*listener) Addr() net.Addr { return &net.UnixAddr{Name: "depot", Net: "unix"} }

// Via returns a way into a machine whose connections lead to the engine in the machine's own folder.
func (d *Depots) Via(v *providers.Via, folder func(providers.Object) string) *providers.Via {
	way := *v
	way.Enter = func(ctx context.Context) (providers.Guest, error) {
		g, err := v.Enter(ctx)
		if err != nil {
			return nil, err
		}
		o, err := v.Object(ctx)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		return &guest{Guest: g, depots: d, path: filepath.Join(folder(o), File)}, nil
	}
	return &way
}

// guest is the inside of a machine with an engine.
type guest struct {
	providers.Guest
	depots *Depots
	path   string
}

// Dial implements providers.Guest.
func (g *guest) Dial(context.Context, string, string) (net.Conn, error) {
	return g.depots.Dial(g.path), nil
}

// File is the name of the file of an engine.
const File = "engine.json"

// Contents holds the images, volumes and containers of an engine.
type Contents struct {
	Made       int // how many containers were made
	Images     map[string]string
	Volumes    map[string]Volume
	Containers []*Container
}

// Volume is a volume of an engine.
type Volume struct{ Labels map[string]string }

// Container is a container of an engine.
type Container struct {
	ID, Name, Image, State, Restart string
	Labels                          map[string]string
	Env                             []string
	Memory                          int64
	Volumes                         []string
}

// Read reads an engine. One without a file is empty.
func Read(path string) (Contents, error) {
	c := Contents{Images: map[string]string{}, Volumes: map[string]Volume{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// Write writes an engine.
func (c Contents) Write(path string) error {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600))
}
