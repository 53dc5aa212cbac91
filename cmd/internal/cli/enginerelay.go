package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"vmctl/internal/scratch"
	"vmctl/providers"
)

// engineRelay relays the connections to a socket of this host into an engine.
type engineRelay struct {
	folder *scratch.Folder
	listen net.Listener
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// relayPrefix begins the names of the folders of relays.
const relayPrefix = "vmctl-relay-"

// relayFrom begins a relay into an engine. Only this user can open its socket. What relays of killed commands left is removed.
func (a *app) relayFrom(ctx context.Context, g providers.Guest) (*engineRelay, error) {
	parent := a.relayParent()
	scratch.Sweep(ctx, parent, relayPrefix, nil)
	folder, err := scratch.Make(ctx, parent, relayPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // a command ends on Ctrl-C as it likes
	w := &engineRelay{folder: folder, stop: stop}
	if w.listen, err = net.Listen("unix", w.path()); err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("make a socket: %w", err), folder.Remove())
	}
	w.all.Go(func() {
		for {
			here, err := w.listen.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { relayOne(ctx, g, here) })
		}
	})
	return w, nil
}

// relayParent returns the folder of the folders of relays.
func (a *app) relayParent() string {
	const longest = 90 // a path of a socket has 107 bytes at most, and 103 on macOS
	parent := a.getenv("TMPDIR")
	if parent == "" {
		parent = os.TempDir()
	}
	if len(parent) > longest-len("/"+relayPrefix+"1234567890/s") {
		return "/tmp"
	}
	return parent
}

func (w *engineRelay) path() string { return filepath.Join(w.folder.Dir, "s") }

func (w *engineRelay) host() string { return "unix://" + w.path() }

// close ends the relay with its connections.
func (w *engineRelay) close() error {
	w.stop()
	err := w.listen.Close()
	w.all.Wait()
	return errors.Join(err, w.folder.Remove())
}

// relayOne relays one connection, each direction until its own end. A connection that cannot be made is closed: what the engine
// would answer is not known.
func relayOne(ctx context.Context, g providers.Guest, here net.Conn) {
	defer here.Close() //nolint:errcheck // it may be closed
	there, err := g.Dial(ctx, "unix", "engine")
	if err != nil {
		return
	}
	defer there.Close() //nolint:errcheck // see above
	defer context.AfterFunc(ctx, func() {
		_ = here.Close()  //nolint:errcheck // see above
		_ = there.Close() //nolint:errcheck // see above
	})()
	var ways sync.WaitGroup
	for _, way := range [][2]net.Conn{{there, here}, {here, there}} {
		ways.Go(func() {
			_, err := io.Copy(way[0], way[1])
			half, can := way[0].(interface{ CloseWrite() error })
			if err != nil || !can || half.CloseWrite() != nil {
				_ = way[0].Close() //nolint:errcheck // see above
			}
		})
	}
	ways.Wait()
}
