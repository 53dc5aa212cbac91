package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"vmctl/internal/ctyread"
	"vmctl/internal/run"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) engineExecCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NAME -- COMMAND [ARG...]",
		Short: "Run a command on this host, such as docker, that talks to an engine",
		Long: "Run a command on this host with DOCKER_HOST set so that it talks to an engine, also to one in a\n" +
			"VM: docker ps, docker compose logs, a test that uses the API. While it runs, vmctl relays\n" +
			"a socket of its own, which nobody else on this host can open, and a VM around the engine is\n" +
			"busy. The exit code is the command's, or 255 if it was not run. Nothing is started for it.\n" +
			"With --json, the exit status and the output are one document.",
		Args: between(2, -1, "the name of an engine and a command"),
		RunE: withCommand(a.engineExec),
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// engineExec runs a command on this host that talks to an engine, and marks the VM around the engine as busy meanwhile.
func (a *app) engineExec(ctx context.Context, name string, command []string) error {
	visitor := visit{vm: name, command: "vmctl engine exec", program: command[0]}
	return a.inEngineOf(ctx, spec.Engine, visitor, func(v observedAddress) (err error) {
		host := ctyread.Text(v.object.Attrs, "endpoint")
		if host == "" {
			g, failed := a.guest(ctx, v)
			if failed != nil {
				return before{err: failed}
			}
			way, failed := relayFrom(ctx, g)
			if failed != nil {
				return before{err: errors.Join(failed, g.Close())}
			}
			defer func() { err = errors.Join(err, way.close(), g.Close()) }()
			host = way.host()
		}
		code, err := a.onEngine(ctx, host, command)
		if err != nil {
			return before{err: err}
		}
		return exited(code, nil)
	})
}

// onEngine runs a command on this host with the address of an engine.
func (a *app) onEngine(ctx context.Context, host string, command []string) (int, error) {
	environ := slices.DeleteFunc(withoutVariables(a.env.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "CONTAINER_HOST"}, name)
	})
	environ = append(environ, "DOCKER_HOST="+host)
	if !a.global.json {
		status, err := a.attended(ctx, run.Command{Args: command, Env: environ, Dir: a.env.Dir})
		if status != 0 {
			err = nil // it was run, and ended by a signal
		}
		return status, err
	}
	env := a.env
	env.Environ = environ
	g, err := onThisHost(env)
	if err != nil {
		return 0, err
	}
	return a.execIn(ctx, g, commandIn(a.env.Dir, command))
}

// engineRelay relays the connections to a socket of this host into an engine.
type engineRelay struct {
	dir    string
	listen net.Listener
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// relayFrom begins a relay into an engine. Only this user can open its socket.
func relayFrom(ctx context.Context, g providers.Guest) (*engineRelay, error) {
	const longest = 90 // a path of a socket has 107 bytes at most, and 103 on macOS
	parent := os.TempDir()
	if len(parent) > longest-len("/vmctl-1234567890/s") {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "vmctl-") // 0700
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // a command ends on Ctrl-C as it likes
	w := &engineRelay{dir: dir, stop: stop}
	if w.listen, err = net.Listen("unix", w.path()); err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("make a socket: %w", err), os.RemoveAll(dir))
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

func (w *engineRelay) path() string { return filepath.Join(w.dir, "s") }

func (w *engineRelay) host() string { return "unix://" + w.path() }

// close ends the relay with its connections.
func (w *engineRelay) close() error {
	w.stop()
	err := w.listen.Close()
	w.all.Wait()
	return errors.Join(err, os.RemoveAll(w.dir))
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
