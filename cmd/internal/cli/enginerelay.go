package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"vmctl/internal/relay"
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
		relay.Serve(ctx, w.listen, func(ctx context.Context) (net.Conn, error) { return g.Dial(ctx, "unix", "engine") })
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
	w.all.Wait()
	return w.folder.Remove()
}
