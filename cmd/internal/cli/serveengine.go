package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"vmctl/internal/relay"
	"vmctl/providers"
	"vmctl/providers/engine"
)

// serveEngine is the name of the command that serves the engine of a VM at a socket of this host.
const serveEngine = "serve-engine"

// serveEngineCommand returns the command that the provider of engines starts.
func (a *app) serveEngineCommand() *cobra.Command {
	return &cobra.Command{
		Use: serveEngine, Hidden: true, Args: cobra.ExactArgs(3),
		Short: "Serve the engine of a VM at a socket of this host",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.serveSocket(cmd.Context(), args[0], args[1], args[2])
			if err != nil {
				fmt.Fprintln(a.env.Stdout, err) //nolint:errcheck // whoever started it may be gone
			}
			return err
		},
	}
}

// serveSocket relays the connections to a socket of this host to one of a VM, until it is asked to end or the VM is lost. As for a
// mount, it marks no VM as busy: it is ended before its VM is taken down.
func (a *app) serveSocket(ctx context.Context, name, there, here string) (err error) {
	inside, err := a.enterForHost(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inside.Close()) }()
	if err := os.Remove(here); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	socket, err := net.Listen("unix", here)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		defer stop()
		waitInside(ctx, inside)
	}()
	fmt.Fprintln(a.env.Stdout, engine.Serving) //nolint:errcheck // whoever started it may be gone
	relay.Serve(ctx, socket, func(ctx context.Context) (net.Conn, error) { return inside.Dial(ctx, "unix", there) })
	stop()
	<-lost
	return nil
}

// waitInside returns when a guest is lost, or ctx ends.
func waitInside(ctx context.Context, inside providers.Guest) {
	read, write, err := os.Pipe()
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = write.Close() })()                  //nolint:errcheck // it ends the command
	_, _ = inside.Run(ctx, providers.Command{Args: []string{"cat"}, Stdin: read}) //nolint:errcheck // however it ended
	_ = read.Close()                                                              //nolint:errcheck // nothing was read
}

// serving returns the beginning of the command that serves the engine of the VM around a provider.
func (a *app) serving(s providers.Settings) []string {
	return append(a.hostProcess(s), serveEngine, s.Via.Address.String())
}
