package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	inside "vmctl/providers/guest"
)

var _ providers.Host = (*Provider)(nil)

// Enter implements providers.Host. The inside of a VM is a folder, in which commands run as
// processes of this host. They end with the VM, but for those that left the process group of their
// command. Nobody logs in.
func (p *Provider) Enter(ctx context.Context, o providers.Object, _ cty.Value) (providers.Guest, error) {
	vm, err := p.observeVM(ctx, o.Name)
	switch {
	case err != nil:
		return nil, err
	case vm.ID != o.ID:
		return nil, fmt.Errorf("VM %s is another one now", o.Name)
	case vm.state != providers.StateRunning:
		return nil, fmt.Errorf("VM %s does not run", o.Name)
	}
	home := p.homePath(o.ID)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of VM %s: %w", o.Name, err)
	}
	folder := inside.InFolder(home, []string{"PATH=" + p.host.Path})
	if vm.run.Process == nil {
		return &recordGuest{Local: folder, host: p, name: o.Name, id: o.ID}, nil
	}
	return p.watched(ctx, folder, *vm.run.Process), nil
}

// errEnded is the reason why a command's end was not seen.
var errEnded = errors.New("the VM has ended")

// processGuest is the inside of a VM with a process, with which it ends.
type processGuest struct {
	*inside.Local
	stop     context.CancelFunc
	watching sync.WaitGroup
}

func (p *Provider) watched(ctx context.Context, folder *inside.Local, vm process.Identity) *processGuest {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &processGuest{Local: folder, stop: stop}
	g.watching.Go(func() {
		if p.processes.Wait(ctx, vm) == nil {
			g.End(errEnded)
		}
	})
	return g
}

// Close implements providers.Guest.
func (g *processGuest) Close() error {
	g.stop()
	g.watching.Wait()
	return g.Local.Close()
}

// recordGuest is the inside of a weightless VM. No process ends with it: only what comes later
// fails.
type recordGuest struct {
	*inside.Local
	host *Provider
	name string
	id   providers.ID
}

// check ends the guest if its VM has.
func (g *recordGuest) check(ctx context.Context) {
	if vm, err := g.host.observeVM(ctx, g.name); err != nil || vm.ID != g.id || vm.state != providers.StateRunning {
		g.End(errEnded)
	}
}

// Run implements providers.Guest.
func (g *recordGuest) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	g.check(ctx)
	return g.Local.Run(ctx, c)
}

// Dial implements providers.Guest.
func (g *recordGuest) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.check(ctx)
	return g.Local.Dial(ctx, network, address)
}
