//go:build linux

package engine_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manySpec has 1,000 containers, which do not run.
const manySpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

engine "here" {
  host = "unix://SOCKET"
}

image "box" {
  engine  = engine.here
  ref     = "demo/box:1"
  archive = "box.tar"
}

container "c" {
  for_each = toset([for i in range(1000) : tostring(i)])
  engine   = engine.here
  image    = image.box
  state    = "created"
}
`

// A look at 1,000 containers that did not change reads each list once, and each container once, and writes nothing: neither a state
// nor anything else. An event costs one look at what it names, however many there are.
//
// row E24
func TestManyContainers(t *testing.T) {
	const many = 1000
	c := newStandIn(t)
	p := projectOf(t, &daemon{t: t, dir: c.dir}, manySpec)
	p.run(0, "apply", "--auto-approve")
	if len(c.all) != many {
		t.Fatalf("the engine has %d containers, want %d", len(c.all), many)
	}
	p.run(0, "plan", "--detailed-exitcode")

	before := p.files()
	for _, args := range [][]string{{"plan", "--detailed-exitcode"}, {"apply", "--auto-approve"}, {"plan", "--detailed-exitcode"}, {"status"}} {
		c.reads()
		p.run(0, args...)
		want := map[string]int{"/images/json": 1, "/volumes": 1, "/networks": 1, "/containers/json": 1, "/containers/ID/json": many, "of the container read most often": 1}
		got := c.reads()
		delete(got, "/info") // of the engine itself
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("vmctl %s reads (-want +got):\n%s", args[0], diff)
		}
		if diff := cmp.Diff(before, p.files()); diff != "" {
			t.Errorf("vmctl %s has written (-before +after):\n%s", args[0], diff)
		}
	}
	if len(c.changed) > 0 {
		t.Errorf("the engine was asked to %v", c.changed)
	}

	w := p.watch()
	w.until("listed")
	for i, state := range []string{"paused", "created"} {
		c.reads()
		name, address := c.becomes(many/2, state)
		drift := map[string]string{"paused": " state", "created": ""}[state]
		w.is(fmt.Sprintf("changed container %s %s %s%s", name, state, address, drift))
		if diff := cmp.Diff(map[string]int{"/containers/ID/json": 1, "of the container read most often": 1}, c.reads()); diff != "" {
			t.Errorf("event %d reads (-want +got):\n%s", i, diff)
		}
	}
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ended it with %v", err)
	}
	if diff := cmp.Diff(before, p.files()); diff != "" {
		t.Errorf("the watch has written (-before +after):\n%s", diff)
	}
}

// files describes each file that vmctl keeps: one that is written has another time or number.
func (p *project) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			all[path] = fmt.Sprintf("number %d of %s, %d bytes", s.Ino, info.ModTime(), s.Size)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// standIn is an engine in this process: it takes one image, makes containers that never run, and counts what is asked of it.
type standIn struct {
	t   *testing.T
	dir string // with its socket

	mu      sync.Mutex
	image   string           // its ID; "": there is none
	all     []map[string]any // the containers, as an inspection shows them
	counted map[string]int   // reads, by path
	inspect map[string]int   // by container
	changed []string         // requests that change something, since the last count of reads
	events  chan string
}

func newStandIn(t *testing.T) *standIn {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "e") //nolint:usetesting // the path of a test's folder is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	c := &standIn{t: t, dir: dir, counted: map[string]int{}, inspect: map[string]int{}, events: make(chan string)}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	server := &http.Server{Handler: http.HandlerFunc(c.serve), BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		end()
		if err := errors.Join(server.Close(), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return c
}

// reads returns how often each path was read since the last call, and how often the container that was inspected most.
func (c *standIn) reads() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.counted
	for _, n := range c.inspect {
		all["of the container read most often"] = max(n, all["of the container read most often"])
	}
	c.counted, c.inspect, c.changed = map[string]int{}, map[string]int{}, nil
	return all
}

// becomes lets a container get another state, and tells those who watch. It returns its name, and the address of its block.
func (c *standIn) becomes(i int, state string) (name, address string) {
	c.mu.Lock()
	one := c.all[i]
	one["State"] = map[string]any{"Status": state}
	c.mu.Unlock()
	c.events <- fmt.Sprintf(`{"Type":"container","Action":"update","Actor":{"ID":%q}}`, one["Id"])
	name, _ = one["Name"].(string)
	config, _ := one["Config"].(map[string]any)
	labels, _ := config["Labels"].(map[string]any)
	address, _ = labels["vmctl.address"].(string)
	return strings.TrimPrefix(name, "/"), address
}

func (c *standIn) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if strings.HasPrefix(path, "/v1.") {
		path = path[1+strings.Index(path[1:], "/"):]
	}
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	if path == "/_ping" {
		return
	}
	if path == "/events" {
		c.tell(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	answer := c.answer(r, path, body)
	c.mu.Unlock()
	if answer == nil {
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]string{"message": "No such object: " + path}
	}
	_ = json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client may have left
}

// tell sends the events until the client leaves.
func (c *standIn) tell(w http.ResponseWriter, r *http.Request) {
	for {
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case event := <-c.events:
			_, _ = io.WriteString(w, event+"\n") //nolint:errcheck // the client may have left
		case <-r.Context().Done():
			return
		}
	}
}

// answer returns the answer to a request. nil: there is no such thing.
func (c *standIn) answer(r *http.Request, path string, body []byte) any {
	if r.Method != http.MethodGet {
		c.changed = append(c.changed, r.Method+" "+path)
	}
	id, isContainer := strings.CutPrefix(strings.TrimSuffix(path, "/json"), "/containers/")
	isContainer = isContainer && strings.HasSuffix(path, "/json")
	switch {
	case r.Method == http.MethodGet && isContainer:
		c.counted["/containers/ID/json"]++
		c.inspect[id]++
	case r.Method == http.MethodGet:
		c.counted[path]++
	}
	switch r.Method + " " + path {
	case "GET /info":
		return map[string]any{"ID": "STANDIN", "ServerVersion": "28.0.0", "DockerRootDir": "/d"}
	case "GET /images/json":
		if c.image == "" {
			return []any{}
		}
		return []any{map[string]any{"Id": c.image, "RepoTags": []string{"demo/box:1"}}}
	case "POST /images/load":
		c.image = configOf(c.t, body)
		return map[string]string{"stream": "Loaded image: demo/box:1\n"}
	case "GET /volumes":
		return map[string]any{"Volumes": []any{}}
	case "GET /networks":
		return []any{}
	case "POST /containers/create":
		return c.create(r.URL.Query().Get("name"), body)
	case "GET /containers/json":
		return c.list(r.URL.Query().Get("filters"))
	}
	if i := slices.IndexFunc(c.all, func(one map[string]any) bool { return one["Id"] == id }); isContainer && i >= 0 {
		return c.all[i]
	}
	return nil
}

func (c *standIn) create(name string, body []byte) any {
	var config, host map[string]any
	if err := json.Unmarshal(body, &config); err != nil {
		c.t.Error(err)
	}
	host, _ = config["HostConfig"].(map[string]any)
	id := fmt.Sprintf("%064x", len(c.all)+1)
	c.all = append(c.all, map[string]any{
		"Id": id, "Name": "/" + name, "Image": c.image, "State": map[string]any{"Status": "created"}, "Config": config, "HostConfig": host,
		"NetworkSettings": map[string]any{"Networks": map[string]any{}},
	})
	return map[string]any{"Id": id, "Warnings": []any{}}
}

// list lists the containers with the labels of a filter.
func (c *standIn) list(filter string) any {
	var wanted struct{ Label []string }
	if filter != "" {
		if err := json.Unmarshal([]byte(filter), &wanted); err != nil {
			c.t.Error(err)
		}
	}
	all := []any{}
	for _, one := range c.all {
		config, _ := one["Config"].(map[string]any)
		labels, _ := config["Labels"].(map[string]any)
		lacks := func(label string) bool {
			name, value, _ := strings.Cut(label, "=")
			return labels[name] != value
		}
		if !slices.ContainsFunc(wanted.Label, lacks) {
			state, _ := one["State"].(map[string]any)
			all = append(all, map[string]any{
				"Id": one["Id"], "Names": []any{one["Name"]}, "State": state["Status"], "Labels": labels, "Image": config["Image"], "ImageID": one["Image"], "Ports": []any{},
			})
		}
	}
	return all
}

// configOf returns the ID of the image in an archive: the digest of its configuration.
func configOf(t *testing.T, archive []byte) string {
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Error(err)
			return ""
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Error(err)
		}
	}
	var manifest []struct{ Config string }
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Errorf("the manifest is %s: %v", files["manifest.json"], err)
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(files[manifest[0].Config]))
}
