package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"vmctl/busy"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// busy returns the folder of the locks that visitors of VMs hold.
func (p *project) busy() busy.Folder { return busy.Folder{Dir: filepath.Join(p.dir, busyLocks)} }

// visitorAddresses lists, for each VM and workspace, the addresses under which a visitor may have entered
// it: its own, and earlier ones that no other has by now.
func (p *project) visitorAddresses(s *state.Snapshot) map[spec.Address][]spec.Address {
	vms := slices.DeleteFunc(known(p, s), func(addr spec.Address) bool { return addr.Kind != spec.VM && addr.Kind != spec.Workspace })
	all := map[spec.Address][]spec.Address{}
	for _, addr := range vms {
		all[addr] = []spec.Address{addr}
		for _, was := range s.Records[addr].Was {
			if _, taken := slices.BinarySearchFunc(vms, was, spec.Address.Compare); !taken {
				all[addr] = append(all[addr], was)
			}
		}
	}
	return all
}

// formerly lists the addresses that a resource had before, as its record and the moved blocks say, and that no other has by now.
func (p *project) formerly(s *state.Snapshot, addr spec.Address) []spec.Address {
	records := s.With(planner.Moves(p.config, s)...).Records
	return slices.DeleteFunc(slices.Clone(records[addr].Was), func(was spec.Address) bool {
		_, described := p.config.Resource(was)
		_, recorded := records[was]
		return described || recorded
	})
}

// atWork lists the visitors of each VM and workspace of the spec and the state, and the jobs in them whose worker is gone.
func (p *project) atWork(ctx context.Context, s *state.Snapshot) (map[spec.Address][]state.Holder, error) {
	doors := p.visitorAddresses(s)
	var all []spec.Address
	for _, addr := range slices.SortedFunc(maps.Keys(doors), spec.Address.Compare) {
		all = append(all, doors[addr]...)
	}
	inside, err := p.visitors(ctx, all)
	if err != nil {
		return nil, err
	}
	busy := map[spec.Address][]state.Holder{}
	for addr, names := range doors {
		var holders []state.Holder
		for _, name := range names {
			holders = append(holders, inside[name]...)
		}
		if len(holders) > 0 {
			slices.SortFunc(holders, state.Holder.Compare)
			busy[addr] = holders
		}
	}
	return busy, nil
}

// visitors lists the visitors of objects, and the jobs in them whose worker is gone, by the address under which they entered.
func (p *project) visitors(ctx context.Context, addrs []spec.Address) (map[spec.Address][]state.Holder, error) {
	inside, err := p.busy().Inside(ctx, addrs)
	if err != nil {
		return nil, err
	}
	orphans, err := p.orphanJobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		if all := append(inside[addr], orphans[addr]...); len(all) > 0 {
			slices.SortFunc(all, state.Holder.Compare)
			inside[addr] = all
		}
	}
	return inside, nil
}

// self describes this process to others that have to wait for it.
func (a *app) self(command string) (state.Holder, error) {
	host, err := os.Hostname()
	if err != nil {
		return state.Holder{}, fmt.Errorf("identify this process: %w", err)
	}
	return state.Holder{PID: os.Getpid(), Host: host, Command: command, Since: a.env.Now().UTC()}, nil
}

// enter marks a VM as in use by this command until leave is called. It fails if another
// command is taking the VM down; the error names that command.
func (a *app) enter(ctx context.Context, p *project, addr spec.Address, command string) (leave func() error, err error) {
	me, err := a.self(command)
	if err != nil {
		return nil, err
	}
	leave, err = p.busy().Enter(ctx, addr, me)
	if state.IsFull(err) {
		if spent, gone := p.folder.FreeReserve(); spent && gone == nil {
			leave, err = p.busy().Enter(ctx, addr, me)
		}
	}
	var closed *busy.ClosedError
	if errors.As(err, &closed) {
		e := newProblem(classRefused, "going_down", closed.Error()+": nobody gets in until that has ended",
			a.commandLine("status", planFlags{})+" says when it runs again")
		e.err = closed
		return nil, e
	}
	return leave, err
}

// gate keeps visitors out of VMs that this command takes down.
type gate struct {
	folder    busy.Folder
	me        state.Holder
	addresses map[spec.Address][]spec.Address                                // an object that is not in it has only its own
	orphans   func(context.Context) (map[spec.Address][]state.Holder, error) // the jobs that their records alone tell of
	closed    *closedVMs
}

var _ executor.Gate = gate{}

// closedVMs holds the doors that this command keeps closed. Two VMs that once had the same
// address share a door, which is closed once for both.
type closedVMs struct {
	mu  sync.Mutex
	all map[spec.Address]*closedVM
}

type closedVM struct {
	closing sync.Mutex
	users   int
	open    func() error // nil: it is not closed yet
}

// close closes a door by calling way, unless the door is closed for another VM already. open
// ends that.
func (d *closedVMs) close(a spec.Address, way func() (func() error, error)) (open func() error, err error) {
	d.mu.Lock()
	door := d.all[a]
	if door == nil {
		door = &closedVM{}
		d.all[a] = door
	}
	door.users++
	d.mu.Unlock()
	door.closing.Lock()
	defer door.closing.Unlock()
	if door.open == nil {
		door.open, err = way()
	}
	if err != nil {
		return nil, errors.Join(err, d.leave(a, door))
	}
	return func() error { return d.leave(a, door) }, nil
}

// leave opens a door once no VM needs it closed any more.
func (d *closedVMs) leave(a spec.Address, door *closedVM) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if door.users--; door.users > 0 {
		return nil
	}
	delete(d.all, a)
	if door.open == nil {
		return nil
	}
	return door.open()
}

// Close implements executor.Gate.
func (g gate) Close(ctx context.Context, c *planner.Change, waiting func([]state.Holder)) (func() error, error) {
	var closed []func() error
	open := func() error {
		var errs []error
		for _, open := range closed {
			errs = append(errs, open())
		}
		return errors.Join(errs...)
	}
	orphans, err := g.orphans(ctx)
	if err != nil {
		return nil, err
	}
	doors := g.addresses[c.Address]
	if len(doors) == 0 {
		doors = []spec.Address{c.Address}
	}
	for _, door := range doors {
		if held := orphans[door]; len(held) > 0 && !c.Busy.Interrupt {
			return nil, errors.Join(executor.BusyFailure(c, held), open())
		}
		opens, err := g.closed.close(door, func() (func() error, error) {
			return g.folder.Close(ctx, busy.Closing{
				Address: door, By: g.me, Interrupt: c.Busy.Interrupt, Wait: c.Busy.Wait, Waiting: waiting,
			})
		})
		var occupied *busy.OccupiedError
		if errors.As(err, &occupied) {
			err = executor.BusyFailure(c, occupied.Holders)
		}
		if err != nil {
			return nil, errors.Join(err, open())
		}
		closed = append(closed, opens)
	}
	return open, nil
}
