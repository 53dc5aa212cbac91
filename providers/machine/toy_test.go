package machine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/clock"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/providers/stop"
	"vmctl/spec"
)

// toy is a system in memory: the smallest one that keeps all promises of a provider of VMs and
// disks.
type toy struct {
	mu       sync.Mutex
	things   map[providers.ID]*thing
	writes   int          // how often something was changed
	lastPort uint16       // that a VM got by "auto"
	deaf     bool         // new VMs ignore requests to end
	down     bool         // it gives no answer
	blind    providers.ID // a VM that cannot be read
}

// thing is a VM, or a disk, which has ID, name and mark of vm, too. A disk that is not whole is half made.
type thing struct {
	kind    spec.Kind
	vm      machine.Seen
	disk    machine.SeenDisk
	content string
	whole   bool
	deaf    bool
	written int
}

const (
	toyTime = time.Minute
	opReady = "wait_ready"
	opClear = "clear"
)

var errNoAnswer = errors.New("the toy gives no answer")

var (
	atStart  = machine.AtStart("it is read at the start")
	toyKinds = map[spec.Kind]map[string]providers.Attribute{
		spec.VM: {
			"name": {}, "running": {Judge: machine.Live("it is started or stopped")}, "cpus": {Judge: atStart}, "memory": {Judge: atStart},
			"accel": {Judge: atStart}, "boot": {Judge: atStart}, "port_forward": {Judge: machine.ForwardsAtStart("it is read at the start")},
			"additional_disk": {Judge: machine.Disks}, "id": machine.Stays(), "address": machine.Stays(), "ports": machine.Ports(),
		},
		spec.Disk: {"name": {}, "size": {Judge: machine.Grows}, "format": {}, "id": machine.Stays(), "path": machine.Stays()},
	}
)

// toyProvider is the toy as one project sees it.
type toyProvider struct {
	*toy
	settings providers.Settings
}

func (p *toyProvider) Close() error { return nil }

func nameClaim(name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimName, Key: name}
}

// described returns a VM with what follows from its state.
func (t *thing) described() machine.Seen {
	s := t.vm
	s.State, s.Claims = providers.StateOff, []providers.Claim{nameClaim(s.Name)}
	if s.Running != nil {
		s.State = providers.StateRunning
	}
	s.Computed = map[string]cty.Value{"id": cty.StringVal(string(s.ID)), "address": cty.StringVal("127.0.0.1"), "ports": machine.PortsValue(s.Got)}
	return s
}

func (t *thing) end() { t.vm.Running, t.vm.Got = nil, nil }

func (p *toyProvider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	inv := providers.Inventory{Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}}
	if p.down {
		inv.Partial[spec.VM], inv.Partial[spec.Disk] = providers.Unread(errNoAnswer), providers.Unread(errNoAnswer)
		return inv, ctx.Err()
	}
	for _, id := range slices.Sorted(maps.Keys(p.things)) {
		switch t := p.things[id]; {
		case id == p.blind:
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: t.kind, ID: id, Name: t.vm.Name, Reason: "it cannot be read"})
		case t.kind == spec.VM:
			inv.Objects = append(inv.Objects, t.described().Object())
		case t.whole:
			inv.Objects = append(inv.Objects, t.disk.Object())
		}
	}
	inv.FindImports(q)
	return inv, ctx.Err()
}

func (p *toyProvider) Steps(c providers.Change) ([]providers.Step, error) {
	policy := machine.DecodePolicy(c.Policy)
	if c.Kind == spec.Disk {
		return machine.DiskRecipe(c, machine.DiskAbilities{
			Policy: policy, Change: toyTime, Wanted: []providers.Claim{nameClaim(c.Name)}, Clear: opClear, Leaves: func(string) []string { return nil },
		})
	}
	a := machine.Abilities{
		Policy: policy, Ready: opReady, Change: toyTime, On: ctyread.True(c.Want, "running"),
		Touches: func(e providers.Edit) bool { return e.Path != "running" },
	}
	if c.Want != cty.NilVal {
		want, err := machine.Decode(c.Want)
		if err != nil {
			return nil, err
		}
		a.Wanted = machine.Claims(nameClaim(machine.Name(c)), want, c.Uses)
	}
	return machine.Recipe(c, a), nil
}

func (p *toyProvider) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	return guard.Run(ctx, p, w, log)
}

func (p *toyProvider) Begin(ctx context.Context, w providers.Work, log providers.Log) (guard.Task, func() error, error) {
	if p.down || ctx.Err() != nil {
		return nil, nil, errors.Join(errNoAnswer, ctx.Err())
	}
	return &toyTask{toyProvider: p, Work: w, log: log}, func() error { return nil }, nil
}

func (p *toyProvider) Failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{Outcome: providers.Failed, Code: "toy", Err: fmt.Errorf(format+": %w", append(args, err)...)}
}

// toyTask is one step under way.
type toyTask struct {
	*toyProvider
	providers.Work
	log  providers.Log
	seen *thing // as it was last read; nil: there is none
}

func (t *toyTask) Guard() guard.Guard {
	return guard.Guard{Work: t.Work, Project: t.settings.Project, Thing: "toy", Look: func(now guard.Seen) string { return "toy show " + now.Name }}
}

func (t *toyTask) Look(context.Context) (*guard.Seen, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = nil
	now := t.things[t.Object]
	switch {
	case t.blind == t.Object:
		return nil, errors.New("it cannot be read")
	case now == nil || now.kind == spec.Disk && !now.whole:
		return nil, nil
	}
	seen := *now
	t.seen = &seen
	if now.kind == spec.Disk {
		return now.disk.Guarded(), nil
	}
	seen.vm = now.described()
	return seen.vm.Guarded(), nil
}

func (t *toyTask) Values(context.Context) (map[string]cty.Value, error) {
	if t.seen.kind == spec.Disk {
		return t.seen.disk.Values(), nil
	}
	return t.seen.vm.Computed, nil
}

func (t *toyTask) Verb() (guard.Verb, error) {
	act := map[string]machine.Act{
		machine.OpDefine: t.write, machine.OpRedefine: t.write, machine.OpGrow: t.write, machine.OpDetach: t.act(t.detach),
		machine.OpUnmark: t.act(t.unmark), machine.OpStart: t.act(t.start), opReady: t.act(func() error { return nil }),
		machine.OpStop: t.stop, machine.OpRecover: t.stop, machine.OpDelete: t.delete, opClear: t.delete,
	}[t.Op]
	switch {
	case t.Op == opClear:
		return guard.Verb{Need: guard.Expected, Act: act}, nil
	case t.Address.Kind == spec.Disk && t.seen == nil:
		return machine.DiskVerb(t.Work, nil, t.isWanted, act), nil
	case t.Address.Kind == spec.Disk:
		return machine.DiskVerb(t.Work, &t.seen.disk, t.isWanted, act), nil
	case t.seen == nil:
		return machine.Verb(t.Work, nil, t.isWanted, act), nil
	}
	return machine.Verb(t.Work, &t.seen.vm, t.isWanted, act), nil
}

// want returns the configuration that a VM is to have.
func (t *toyTask) want() (machine.Config, error) {
	vm, err := machine.Decode(t.Want)
	c := machine.Config{CPUs: vm.CPUs, Memory: vm.Memory, Accel: vm.Accel, Boot: vm.Boot, Forwards: vm.Forwards}
	for _, a := range vm.Disks {
		c.DiskIDs, c.Disks, c.Files = append(c.DiskIDs, t.Uses[a].ID), append(c.Disks, a.String()), append(c.Files, t.Uses[a].Name)
	}
	return c, err
}

// act changes the toy while nobody else does.
func (t *toyTask) act(change func() error) machine.Act {
	return func(context.Context) (*guard.Outcome, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err := change(); err != nil {
			return nil, err
		}
		t.writes++
		if now := t.things[t.Object]; now != nil {
			now.written = t.writes
		}
		return guard.Did(providers.Done), nil
	}
}

func (t *toyTask) refuse(code, why string) error {
	return &providers.Problem{Outcome: providers.Unsafe, Code: code, Next: providers.Say("toy list"), Err: fmt.Errorf("%s %s: %s", t.Op, t.Address, why)}
}

// nameIsFree fails if another object of the kind than the one with that ID has the name.
func (t *toyTask) nameIsFree(name string, id providers.ID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, o := range t.things {
		if o.kind == t.Address.Kind && o.vm.Name == name && other != id {
			return t.refuse("name_taken", "there is another one of the name "+name)
		}
	}
	return nil
}

// make returns the object of the step with its mark. It makes it if it does not exist.
func (t *toyTask) make() *thing {
	now := t.things[t.Object]
	if now == nil || now.kind == spec.Disk && !now.whole {
		now = &thing{kind: t.Address.Kind, deaf: t.deaf, whole: true}
		t.things[t.Object] = now
	}
	p := t.settings.Project
	mark := &providers.Mark{ID: p.Lineage(), Project: p.Name, Address: t.Address, Of: t.Object, Generation: t.Generation}
	now.vm.ID, now.vm.Name, now.vm.Mark = t.Object, t.Name, mark
	now.disk.ID, now.disk.Name, now.disk.Mark = t.Object, t.Name, mark
	return now
}

func (t *toyTask) isWanted(context.Context) (bool, error) {
	switch {
	case t.seen == nil:
		return false, nil
	case t.seen.kind == spec.Disk:
		return machine.IsMarked(t.Work, t.seen.disk.Mark) && t.seen.disk.Size >= ctyread.Uint(t.Want, "size"), nil
	}
	want, err := t.want()
	now := t.seen.vm
	has := now.Running == nil || len(now.Running.Files) >= len(want.Files)
	return has && machine.IsMarked(t.Work, now.Mark) && reflect.DeepEqual(*now.Configured, want), err
}

// write makes or changes an object, and attaches new disks to a VM that runs.
func (t *toyTask) write(ctx context.Context) (*guard.Outcome, error) {
	if err := t.nameIsFree(t.Name, t.Object); err != nil {
		return nil, err
	}
	want, err := t.want()
	if t.Address.Kind == spec.VM && err != nil {
		return nil, err
	}
	return t.act(func() error { return t.put(want) })(ctx)
}

func (t *toyTask) put(want machine.Config) error {
	now := t.make()
	if d := &now.disk; now.kind == spec.Disk {
		d.Path, d.Size, d.Claims = "/toy/"+t.Name, max(d.Size, ctyread.Uint(t.Want, "size")), []providers.Claim{nameClaim(t.Name)}
		d.Format = ctyread.Text(t.Want, "format")
		return nil
	}
	now.vm.Configured = &want
	if r := now.vm.Running; r != nil && len(want.Files) > len(r.Files) {
		with := *r
		with.DiskIDs, with.Disks, with.Files = want.DiskIDs, want.Disks, want.Files
		now.vm.Running = &with
	}
	return nil
}

func (t *toyTask) unmark() error {
	t.things[t.Object].vm.Mark, t.things[t.Object].disk.Mark = nil, nil
	return nil
}

func (t *toyTask) detach() error {
	vm := &t.things[t.Object].vm
	if vm.Running != nil {
		return t.refuse("still_running", "it runs")
	}
	taken := func(c providers.Claim) bool { return slices.Contains(t.Frees, c) }
	c := *vm.Configured
	c.Forwards = slices.DeleteFunc(slices.Clone(c.Forwards), func(f machine.Forward) bool { return taken(f.Claim()) })
	c.DiskIDs, c.Disks, c.Files = nil, nil, nil
	for i, id := range vm.Configured.DiskIDs {
		if !taken(machine.DiskClaim(id)) {
			c.DiskIDs, c.Disks, c.Files = append(c.DiskIDs, id), append(c.Disks, vm.Configured.Disks[i]), append(c.Files, vm.Configured.Files[i])
		}
	}
	vm.Configured = &c
	return nil
}

func (t *toyTask) start() error {
	vm := &t.things[t.Object].vm
	vm.Running, vm.Got = vm.Configured, slices.Clone(vm.Configured.Forwards)
	for i, f := range vm.Got {
		if !f.Fixed() {
			t.lastPort++
			vm.Got[i].Host = 40000 + t.lastPort
		}
	}
	return nil
}

func (t *toyTask) stop(ctx context.Context) (*guard.Outcome, error) {
	if err := t.nameIsFree(machine.ArgsOf(t.Step).NextName, machine.ArgsOf(t.Step).NextID); err != nil {
		return nil, err
	}
	p := machine.DecodePolicy(t.Policy)
	r, err := stop.Stop(ctx, &target{t}, stop.Policy{
		Grace: p.Grace, ForceWait: p.ForceWait, Forbidden: !p.Force, Poll: time.Millisecond, StillSays: providers.Say("toy end " + t.Name),
	}, stop.Clock{Now: time.Now, Sleep: clock.Sleep}, t.log)
	return guard.Did(r.How, r.Evidence...), err
}

// target is a running VM that is to end.
type target struct{ *toyTask }

func (t *target) Look(context.Context) (stop.Observation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.things[t.Object]; now != nil && now.vm.Running != nil {
		return stop.Observation{Verdict: stop.Runs, Evidence: "it runs"}, nil
	}
	return stop.Observation{Verdict: stop.Gone, Evidence: "it is off"}, nil
}

func (t *target) Request(ctx context.Context) error {
	if t.seen.deaf {
		return nil
	}
	return t.Force(ctx)
}

func (t *target) Force(ctx context.Context) error {
	_, err := t.act(func() error { t.things[t.Object].end(); return nil })(ctx)
	return err
}

func (t *toyTask) delete(ctx context.Context) (*guard.Outcome, error) {
	if err := t.nameIsFree(machine.ArgsOf(t.Step).NextName, machine.ArgsOf(t.Step).NextID); err != nil {
		return nil, err
	}
	did, err := t.act(func() error {
		for _, o := range t.things {
			if slices.Contains(o.vm.Holds(), machine.DiskClaim(t.Object)) {
				return t.refuse("disk_in_use", "VM "+o.vm.Name+" has it")
			}
		}
		if now := t.things[t.Object]; now != nil && now.vm.Running != nil {
			return t.refuse("still_running", "it runs")
		}
		delete(t.things, t.Object)
		return nil
	})(ctx)
	if t.seen == nil && err == nil {
		did.How = providers.AlreadyGone
	}
	return did, err
}
