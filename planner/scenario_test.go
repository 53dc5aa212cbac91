package planner_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/providers/providertest"
	"vmctl/providers/providertest/box"
	"vmctl/providers/provision"
	"vmctl/spec"
	"vmctl/state"
)

var project = providers.Project{Name: "demo", ID: "k7m2qd9x4r"}

// scene is a spec, a state and a world that a test plans on. It begins as if a
// spec had been applied without a fault; a test then changes what it is about.
type scene struct {
	t       testing.TB
	config  *spec.Config
	state   *state.Snapshot
	systems map[string]*system // by uri
	insides map[string]*system // by VM
	options planner.Options
	// inhabited opens what is neither a VM nor a box; nil: there is none.
	inhabited func(planner.Opening) providers.Provider

	opening sync.Mutex // systems are opened side by side
}

// system is a provider that shows the objects that a test put there.
type system struct {
	inventory providers.Inventory
	known     []providers.Known
	checks    bool                                               // what ends with what it is inside of is looked at before that
	saves     bool                                               // the first step of a removal saves the work in a box
	refusal   *providers.Problem                                 // of every change; nil: none
	panics    string                                             // the call that panics: "observe", "steps", "preview", or the steps of one action
	preview   func(providers.Change) (*providers.Preview, error) // nil: it cannot tell
}

func (s *system) Observe(_ context.Context, q providers.Query) (providers.Inventory, error) {
	if s.panics == "observe" {
		panic("planted")
	}
	s.known = q.Known
	return s.inventory, nil
}

func (s *system) Do(context.Context, providers.Work, providers.Log) (providers.Result, error) {
	panic("a plan changed something")
}

func (s *system) Close() error { return nil }

func (s *system) Preview(_ context.Context, c providers.Change) (*providers.Preview, error) {
	if s.panics == "preview" {
		panic("planted")
	}
	if s.preview == nil {
		return nil, nil
	}
	return s.preview(c)
}

// Steps gives the sequence that the conformance suite demands of every provider.
func (s *system) Steps(c providers.Change) ([]providers.Step, error) {
	if s.panics == "steps" || s.panics == string(c.Action) {
		panic("planted")
	}
	if s.refusal != nil {
		return nil, s.refusal
	}
	if c.Kind == box.Kind {
		steps := owed(box.Steps(c), c)
		if s.saves && c.Action == providers.Destroy {
			steps[0].Saves = true
		}
		if s.checks && c.Ends {
			check := machine.Append(nil, c, providers.Step{Op: "check", Phase: providers.PhaseRelease, Object: c.Object.ID, Name: c.Name, Checks: true})
			if c.Action == providers.Release {
				return append(check, steps...), nil
			}
			return check, nil
		}
		return steps, nil
	}
	if c.Kind != spec.VM {
		return passive(c), nil
	}
	a := machine.Abilities{Policy: machine.DecodePolicy(c.Policy), Ready: "wait_ssh", Touches: touchesOne}
	if c.Want != cty.NilVal {
		a.On, a.Wanted = c.Want.GetAttr("running").True(), wanted(c)
	}
	return provision.Steps(c, func(c providers.Change) ([]providers.Step, error) { return machine.Recipe(c, a), nil })
}

// passive returns the steps of a change of a disk.
func passive(c providers.Change) []providers.Step {
	var steps []providers.Step
	add := func(op string, phase providers.Phase, id providers.ID) *providers.Step {
		steps = machine.Append(steps, c, providers.Step{Op: op, Phase: phase, Object: id, Name: c.Name})
		return &steps[len(steps)-1]
	}
	remove := func() {
		step := add("delete", providers.PhaseRemove, c.Object.ID)
		if c.Kind == spec.Disk {
			step.Takes = []providers.Claim{{Kind: providers.ClaimDisk, Key: string(c.Object.ID)}}
		}
	}
	switch c.Action {
	case providers.Create:
		add("define", providers.PhaseMake, c.ID)
	case providers.Update, providers.Import:
		add("redefine", providers.PhaseChange, c.ID)
	case providers.ReplaceIt:
		remove()
		add("define", providers.PhaseMake, c.ID)
	case providers.Destroy:
		remove()
	case providers.Recover:
		add("unlock", providers.PhaseRelease, c.ID)
	case providers.RestartIt, providers.Start, providers.Stop, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
	}
	return steps
}

// wanted returns the claims that a VM holds once it is as wanted.
func wanted(c providers.Change) []providers.Claim {
	all := claims(c.Want)
	all = append(all, providers.Claim{Kind: "name", Key: machine.Name(c)})
	for _, a := range slices.SortedFunc(maps.Keys(c.Uses), spec.Address.Compare) {
		if a.Kind == spec.Disk && strings.Contains(fmt.Sprintf("%#v", c.Want.GetAttr("additional_disk")), strconv.Quote(a.String())) {
			all = append(all, providers.Claim{Kind: providers.ClaimDisk, Key: string(c.Uses[a].ID)})
		}
	}
	return all
}

func touchesOne(e providers.Edit) bool { return !strings.HasPrefix(e.Path, "ssh") }

func claims(v cty.Value) []providers.Claim {
	var all []providers.Claim
	if v == cty.NilVal || !v.GetAttr("port_forward").IsKnown() {
		return nil
	}
	for _, f := range v.GetAttr("port_forward").AsValueSlice() {
		if host := f.GetAttr("host").AsString(); host != "auto" {
			all = append(all, providers.Claim{Kind: "host port", Key: f.GetAttr("host_ip").AsString() + ":" + host})
		}
	}
	return all
}

func testType() providers.Type {
	live := func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: "vmctl alone uses it"}
	}
	restart := func(_, _ cty.Value, running bool) providers.Verdict {
		if !running {
			return providers.Verdict{Applies: providers.Live, Reason: "takes effect at the next start"}
		}
		return providers.Verdict{Applies: providers.Restart, Reason: "the guest sees it at its next start"}
	}
	plug := func(before, after cty.Value, running bool) providers.Verdict {
		if after.LengthInt() > before.LengthInt() {
			return providers.Verdict{Applies: providers.Live, Reason: "plugged in"}
		}
		return restart(before, after, running)
	}
	refused := func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Refused, Reason: "cannot be changed at all"}
	}
	return provision.Wrap(providers.Type{
		Name: "libvirt", Produces: map[spec.Kind][]string{spec.VM: {"ssh.ready"}},
		Kinds: map[spec.Kind]map[string]providers.Attribute{spec.VM: {
			"running": {Judge: live}, "name": {}, "cpus": {Judge: restart}, "memory": {Judge: restart}, "accel": {},
			"additional_disk": {Judge: plug}, "restart_triggers": {Judge: restart}, "boot": {Judge: restart}, "boot.cmdline": {Judge: refused}, "port_forward": {Judge: restart}, "ssh": {Judge: live},
			"network_interface": {Judge: restart},
			"id":                {Computed: true}, "address": {Computed: true}, "ssh_port": {Computed: true}, "ports": {Computed: true},
		}, spec.Disk: {
			"name": {}, "size": {Judge: live}, "format": {}, "id": {Computed: true}, "path": {Computed: true},
		}, spec.Network: {
			"name": {}, "cidr": {}, "internal": {}, "id": {Computed: true},
		}},
		Rekey: func(running bool) providers.Verdict { return restart(cty.NilVal, cty.NilVal, running) },
		System: func(_ string, attrs cty.Value) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"uri": attrs.GetAttr("uri")})
		},
		Resolve: func(attrs cty.Value) cty.Value {
			m := attrs.AsValueMap()
			if m["uri"].IsNull() {
				m["uri"] = cty.StringVal("qemu:///session")
			}
			return cty.ObjectVal(m)
		},
	})
}

// testTypes returns testType, and the type of what is inside of its VMs.
func testTypes() providers.Types {
	return providers.Types{
		Systems: map[string]providers.Type{"libvirt": testType()},
		Inside:  map[spec.Kind]providers.Type{box.Kind: box.Type(nil)},
	}
}

func load(t testing.TB, source string) *spec.Config {
	t.Helper()
	dir := t.TempDir()
	head := "vmctl {\n  project = \"demo\"\n  id = \"k7m2qd9x4r\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), []byte(head+source), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kernel"), []byte("a kernel"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, diags := spec.Load(dir, spec.Inputs{
		Supports:      func(string, spec.Kind, string) bool { return true },
		ProviderTypes: []string{"libvirt"},
		Version:       "0.1.0",
	})
	if diags.HasErrors() {
		t.Fatalf("load: %s", diags)
	}
	return c
}

// after returns the scene right after a spec was applied.
func after(t testing.TB, applied string) *scene {
	t.Helper()
	s := &scene{
		t: t,
		state: &state.Snapshot{
			Format: state.Format, ID: project.ID, Project: project.Name, Serial: 7, Records: map[spec.Address]state.Record{},
		},
		systems: map[string]*system{}, insides: map[string]*system{},
		options: planner.Options{Types: testTypes(), Project: project},
	}
	s.config = load(t, applied)
	for i, r := range s.config.Resources {
		id := planner.ObjectID(project, r.Address, 0)
		if r.Address.Kind != spec.VM {
			s.put(r, id)
			continue
		}
		running := r.Want.GetAttr("running").True()
		shown := map[string]cty.Value{
			"cpus": r.Want.GetAttr("cpus"), "memory": r.Want.GetAttr("memory"), "id": cty.StringVal(string(id)),
			"ssh_port": cty.NumberIntVal(int64(40000 + i)),
		}
		values := r.Want.AsValueMap()
		maps.Copy(values, shown)
		name := planner.ObjectName(project, r.Address)
		if chosen := r.Want.GetAttr("name"); !chosen.IsNull() {
			name = chosen.AsString()
		}
		settings := testType().Resolve(s.provider(r.Provider))
		s.state.Records[r.Address] = state.Record{
			Kind: r.Address.Kind, Provider: r.Provider, Settings: settings, ID: string(id), Name: name,
			Generation: 1, Starts: 1, Values: cty.ObjectVal(values), Policy: r.Policy, Uses: r.Uses,
			Conditions: ready(running),
		}
		sys := s.system(settings.GetAttr("uri").AsString())
		sys.inventory.Objects = append(sys.inventory.Objects, providers.Object{
			Kind: r.Address.Kind, ID: id, Name: name, Running: &running,
			State:       map[bool]string{true: providers.StateRunning, false: providers.StateOff}[running],
			Owner:       &providers.Mark{ID: project.ID, Project: project.Name, Address: r.Address, Of: id, Generation: 1},
			Attrs:       cty.ObjectVal(shown),
			Holds:       wanted(providers.Change{Name: name, Want: r.Want, Uses: usedBy(r)}),
			Fingerprint: "as applied",
		})
	}
	return s
}

// ready returns the conditions of a VM after an apply that waited until it was ready, or that stopped it.
func ready(running bool) condition.Set {
	r := condition.Report{Type: condition.SSHReady, Status: condition.True, Reason: condition.Ready}
	if !running {
		r.Status, r.Reason = condition.NotApplicable, condition.Stopped
	}
	return condition.Set{}.With(r, condition.Stamp{Generation: 1, Producer: "libvirt"})
}

// put adds the record and the object of a resource that does not run, as if it had been applied.
func (s *scene) put(r spec.Resource, id providers.ID) {
	settings := testType().Resolve(s.provider(r.Provider))
	sys := s.system(settings.GetAttr("uri").AsString())
	if (r.Inside != spec.Address{}) {
		sys = s.inside(r.Inside.String())
	}
	name, values := planner.ObjectName(project, r.Address), r.Want
	if r.Address.Kind == box.Kind {
		shown := r.Want.AsValueMap()
		shown["id"] = cty.StringVal(string(id))
		values = cty.ObjectVal(shown)
	}
	s.state.Records[r.Address] = state.Record{
		Kind: r.Address.Kind, Provider: r.Provider, Settings: settings, ID: string(id), Name: name, Inside: r.Inside,
		Generation: 1, Values: values, Policy: r.Policy, Uses: r.Uses,
	}
	o := providers.Object{
		Kind: r.Address.Kind, ID: id, Name: name, Attrs: values, Fingerprint: "as applied",
		Owner: &providers.Mark{ID: project.ID, Project: project.Name, Address: r.Address, Of: id, Generation: 1},
	}
	if r.Address.Kind == box.Kind {
		open := r.Want.GetAttr("running").True()
		o.Running, o.State = &open, map[bool]string{true: providers.StateRunning, false: providers.StateOff}[open]
		o.Holds = []providers.Claim{{Kind: "label", Key: r.Want.GetAttr("label").AsString()}}
	}
	sys.inventory.Objects = append(sys.inventory.Objects, o)
}

// usedBy maps each address that a resource uses to the object found there, as first applied.
func usedBy(r spec.Resource) map[spec.Address]providers.Used {
	uses := map[spec.Address]providers.Used{}
	for _, a := range r.Uses {
		uses[a] = providers.Used{Kind: a.Kind, ID: planner.ObjectID(project, a, 0)}
	}
	return uses
}

func (s *scene) inside(vm string) *system {
	if s.insides[vm] == nil {
		s.insides[vm] = &system{}
	}
	return s.insides[vm]
}

func (s *scene) provider(ref spec.ProviderRef) cty.Value {
	for _, p := range s.config.Providers {
		if p.Ref == ref {
			return p.Attrs
		}
	}
	s.t.Fatalf("no provider %s", ref)
	return cty.NilVal
}

func (s *scene) system(uri string) *system {
	if s.systems[uri] == nil {
		s.systems[uri] = &system{}
	}
	return s.systems[uri]
}

// object returns the object of vm.a in the world.
func (s *scene) object() *providers.Object { return s.objectOf("vm.a") }

func (s *scene) objectOf(address string) *providers.Object {
	s.t.Helper()
	for _, sys := range s.systems {
		for i := range sys.inventory.Objects {
			if o := &sys.inventory.Objects[i]; o.Owner != nil && o.Owner.Address.String() == address {
				return o
			}
		}
	}
	s.t.Fatalf("no object of %s", address)
	return nil
}

// lose lets the object of an address vanish.
func (s *scene) lose(address string) {
	for _, sys := range s.systems {
		sys.inventory.Objects = slices.DeleteFunc(sys.inventory.Objects, func(o providers.Object) bool {
			return o.Owner != nil && o.Owner.Address.String() == address
		})
	}
}

func (s *scene) forget(address string) { delete(s.state.Records, addr(s.t, address)) }

func (s *scene) interrupt(address, op string) {
	s.state.Interrupted = append(s.state.Interrupted, state.Entry{
		Kind: state.Begin, Run: "r1", Op: op, Address: addr(s.t, address), Leaves: []string{"half of it"},
		At: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
	})
}

func (s *scene) open(_ context.Context, o planner.Opening) (providers.Provider, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.inhabited != nil {
		if p := s.inhabited(o); p != nil {
			return p, nil
		}
	}
	if o.Via != nil {
		there := s.system(o.Attrs.GetAttr("uri").AsString()).inventory.Objects
		vm, err := o.Via.Object(s.t.Context())
		if err == nil && vm.Kind == spec.VM && !slices.ContainsFunc(there, func(x providers.Object) bool { return x.ID == vm.ID }) {
			s.t.Errorf("the inside of %s is looked for in another system", o.Via.Address)
		}
		return s.inside(o.Via.Address.String()), nil
	}
	return s.system(o.Attrs.GetAttr("uri").AsString()), nil
}

func (s *scene) plan() (*planner.Plan, error) {
	p, w, err := planner.Make(s.t.Context(), s.open, s.config, s.state, s.options)
	if w != nil {
		if err := w.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	return p, err
}

// text returns a plan in the form in which the tests write it.
func text(p *planner.Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		if c.Action == providers.NoOp && c.Blocked == nil {
			continue
		}
		fmt.Fprintf(&b, "%s %s", c.Action, c.Address)
		if c.Reason != "" {
			fmt.Fprintf(&b, ": %s", c.Reason)
		}
		b.WriteByte('\n')
		if c.Mark != nil {
			fmt.Fprintf(&b, "  mark %s -> %s, live\n", cmp.Or(c.Mark.Before.String(), "none"), c.Address)
		}
		for _, e := range c.Edits {
			fmt.Fprintf(&b, "  %s %s -> %s, %s\n", e.Path, spec.FormatValue(c.Kind, e.Path, e.Before), spec.FormatValue(c.Kind, e.Path, e.After), e.Verdict.Applies)
		}
		if c.Rekey != nil {
			fmt.Fprintf(&b, "  keys %s\n", c.Rekey.Applies)
		}
		if c.Blocked != nil {
			fmt.Fprintf(&b, "  %s: %s\n", c.Blocked.Kind(), c.Blocked.Error())
			for _, n := range providertest.Lines(c.Blocked.Next) {
				fmt.Fprintf(&b, "  > %s\n", n)
			}
		}
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "found %s %s: %s\n", f.Kind, f.Address, strings.Join(f.Evidence, "; "))
	}
	for _, d := range p.Deferred {
		fmt.Fprintf(&b, "deferred %s until %s is ready\n", d.Address, d.Until)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%d %s %s", s.ID, s.Op, s.Address)
		if len(s.After) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(s.After), " ", ","), "[]"))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func addr(t testing.TB, s string) spec.Address {
	t.Helper()
	a, err := spec.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
