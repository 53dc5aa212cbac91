package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"vmctl/busy"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// busy is where those at work in VMs are.
func (p *project) busy() busy.Folder { return busy.Folder{Dir: filepath.Join(p.dir, busyLocks)} }

// atWork lists who is inside each VM of the spec and the state.
func (p *project) atWork(ctx context.Context, s *state.Snapshot) (map[spec.Address][]state.Holder, error) {
	vms := slices.DeleteFunc(known(p, s), func(addr spec.Address) bool { return addr.Kind != spec.VM })
	return p.busy().Inside(ctx, vms)
}

// self is this process, for whoever has to wait for it.
func (a *app) self(command string) (state.Holder, error) {
	host, err := os.Hostname()
	if err != nil {
		return state.Holder{}, fmt.Errorf("say who is at work: %w", err)
	}
	return state.Holder{PID: os.Getpid(), Host: host, Command: command, Since: a.env.Now().UTC()}, nil
}

// enter goes inside a VM, or says who takes it down.
func (a *app) enter(ctx context.Context, p *project, addr spec.Address, command string) (leave func() error, err error) {
	me, err := a.self(command)
	if err != nil {
		return nil, err
	}
	leave, err = p.busy().Enter(ctx, addr, me)
	var closed *busy.ClosedError
	if errors.As(err, &closed) {
		e := newProblem(classRefused, "going_down", closed.Error()+": nobody gets in until that has ended",
			a.commandLine("status", planFlags{})+" says when it runs again")
		e.err = closed
		return nil, e
	}
	return leave, err
}

// gate keeps others out of VMs that this command takes down.
type gate struct {
	folder busy.Folder
	me     state.Holder
}

var _ executor.Gate = gate{}

// Close implements executor.Gate.
func (g gate) Close(ctx context.Context, c *planner.Change, waiting func([]state.Holder)) (func() error, error) {
	open, err := g.folder.Close(ctx, busy.Closing{
		Address: c.Address, By: g.me, Interrupt: c.Busy.Interrupt, Wait: c.Busy.Wait, Waiting: waiting,
	})
	var occupied *busy.OccupiedError
	if errors.As(err, &occupied) {
		return nil, executor.BusyFailure(c, occupied.Holders)
	}
	return open, err
}
