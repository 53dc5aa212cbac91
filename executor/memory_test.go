package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/providers"
	machinekit "vmctl/providers/machine"
	"vmctl/spec"
)

// memory is a provider whose VMs are values in memory. It compares Expect, acts
// and confirms like any other; what goes wrong is declared.
type memory struct {
	mu      sync.Mutex
	objects map[providers.ID]*machine
	fail    map[string]*providers.Problem // "op address" -> how it fails
	hold    map[string]chan struct{}      // "op address" -> ends when closed, or with the context
	entered chan string                   // every op, as it begins
	class   map[string]providers.Class    // "op" -> class; contractual if absent
	uploads bool                          // a replacement begins with an upload, while the old object runs
	panics  string                        // "op address" of the step that panics
	done    []string                      // every op that acted, in order
	project providers.Project
	rename  map[string]providers.ID   // "op address" -> the ID that its object has from then on
	works   map[string]providers.Work // "op address" -> what it was last given

	reports map[string][]condition.Report // "op address" -> what it reports before it is held
	limits  map[string]time.Duration      // "op" -> its limit; none if absent
}

type machine struct {
	name    string
	mark    providers.Mark
	running bool
	attrs   cty.Value
	ports   []providers.Claim
}

func newMemory(p providers.Project) *memory {
	return &memory{
		objects: map[providers.ID]*machine{}, fail: map[string]*providers.Problem{},
		hold: map[string]chan struct{}{}, class: map[string]providers.Class{}, project: p,
		rename: map[string]providers.ID{}, works: map[string]providers.Work{},
	}
}

var _ providers.Provider = (*memory)(nil)

func memoryType() providers.Type {
	live := func(cty.Value, cty.Value, bool) providers.Verdict { return providers.Verdict{Applies: providers.Live} }
	restart := func(_, _ cty.Value, running bool) providers.Verdict {
		if !running {
			return providers.Verdict{Applies: providers.Live, Reason: "takes effect at the next start"}
		}
		return providers.Verdict{Applies: providers.Restart, Reason: "the guest sees it at its next start"}
	}
	return providers.Type{Name: "libvirt", Produces: map[spec.Kind][]string{spec.VM: {"ssh.ready"}}, Kinds: map[spec.Kind]map[string]providers.Attribute{spec.VM: {
		"running": {Judge: live}, "cpus": {Judge: restart}, "memory": {Judge: restart}, "accel": {Judge: restart},
		"boot": {Judge: restart}, "port_forward": {Judge: restart}, "restart_triggers": {Judge: restart}, "ssh": {Judge: live}, "name": {},
		"id": {Computed: true}, "address": {Computed: true}, "ssh_port": {Computed: true}, "ports": {Computed: true},
	}}}
}

func (m *memory) Close() error { return nil }

func (m *memory) Observe(_ context.Context, q providers.Query) (providers.Inventory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	inv := providers.Inventory{Found: map[spec.Address]providers.ID{}}
	for id, o := range m.objects {
		state, running := providers.StateOff, o.running
		if running {
			state = providers.StateRunning
		}
		owner := &o.mark
		if o.mark == (providers.Mark{}) {
			owner = nil
		}
		inv.Objects = append(inv.Objects, providers.Object{
			Kind: spec.VM, ID: id, Name: o.name, Owner: owner, Running: &running, State: state,
			Attrs: o.attrs, Fingerprint: o.fingerprint(id), Holds: o.ports,
		})
	}
	inv.FindImports(q)
	return inv, nil
}

func (o *machine) fingerprint(id providers.ID) string {
	return fmt.Sprint(id, o.name, o.mark.Generation, o.running, o.attrs.GetAttr("memory").AsBigFloat())
}

func (m *memory) Steps(c providers.Change) ([]providers.Step, error) {
	a := machinekit.Abilities{
		Policy: machinekit.DecodePolicy(c.Policy), Ready: "wait_ssh",
		Touches: func(providers.Edit) bool { return true },
	}
	if c.Want != cty.NilVal {
		a.On, a.Wanted = c.Want.GetAttr("running").True(), hostPorts(c.Want)
	}
	if c.Action == providers.Forget && c.Object == nil {
		a.First = []providers.Step{{Op: "delete", Phase: providers.PhaseRemove, Object: c.ID, Name: c.Name}}
	}
	if c.Action == providers.ReplaceIt && m.uploads {
		a.First = []providers.Step{{Op: "upload", Phase: providers.PhaseRelease}}
	}
	steps := machinekit.Recipe(c, a)
	for i := range steps {
		steps[i].Timeout = m.limits[steps[i].Op] // the tests' own deadlines count
		if class, ok := m.class[steps[i].Op]; ok {
			steps[i].Class = class
		}
	}
	return steps, nil
}

// hostPorts returns the claims on the ports that a VM forwards.
func hostPorts(v cty.Value) []providers.Claim {
	var all []providers.Claim
	for _, f := range v.GetAttr("port_forward").AsValueSlice() {
		all = append(all, providers.Claim{Kind: providers.ClaimPort, Key: f.GetAttr("host_ip").AsString() + ":" + f.GetAttr("host").AsString()})
	}
	return all
}

func (m *memory) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	key := w.Op + " " + w.Address.String()
	m.mu.Lock()
	m.works[key] = w
	hold, failure := m.hold[key], m.fail[key]
	m.mu.Unlock()
	if m.entered != nil {
		m.entered <- key
	}
	log(providers.Progress{Text: "at it"})
	for _, r := range m.reports[key] {
		log(providers.Progress{Condition: &r})
	}
	if m.panics == key {
		panic("planted")
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return providers.Result{}, fmt.Errorf("%s: %w", key, ctx.Err())
		}
	}
	if failure != nil {
		return providers.Result{}, failure
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.act(w)
}

func (m *memory) act(w providers.Work) (providers.Result, error) {
	o := m.objects[w.Object]
	found := ""
	if o != nil {
		found = o.fingerprint(w.Object)
	}
	if found != w.Expect {
		return providers.Result{}, &providers.Problem{
			Outcome: providers.Stale, Code: "stale",
			Seen: []string{"expected " + strconv.Quote(w.Expect) + ", found " + strconv.Quote(found)},
			Err:  errors.New("stale plan"),
		}
	}
	m.done = append(m.done, w.Op+" "+w.Address.String())
	r := providers.Result{ID: w.Object, How: providers.Done}
	switch w.Op {
	case "define", "redefine":
		running := o != nil && o.running
		if id, ok := m.rename[w.Op+" "+w.Address.String()]; ok {
			delete(m.objects, w.Object)
			w.Object, r.ID = id, id
		}
		o = &machine{name: w.Name, running: running, ports: hostPorts(w.Want), attrs: cty.ObjectVal(map[string]cty.Value{
			"memory": w.Want.GetAttr("memory"), "cpus": w.Want.GetAttr("cpus"), "id": cty.StringVal(string(w.Object)),
		})}
		o.mark = providers.Mark{ID: m.project.Lineage(), Project: m.project.Name, Address: w.Address, Of: w.Object, Generation: w.Generation}
		m.objects[w.Object] = o
		r.Values = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(string(w.Object))})
	case "start", "stop":
		if o.running == (w.Op == "start") {
			r.How = providers.AlreadyTrue
			break
		}
		o.running = w.Op == "start"
		if w.Op == "stop" {
			r.How = providers.Graceful
		} else {
			r.Values = cty.ObjectVal(map[string]cty.Value{
				"address": cty.StringVal("127.0.0.1"), "ssh_port": cty.NumberIntVal(int64(40000 + len(m.done))),
			})
		}
	case "detach":
		o.ports = slices.DeleteFunc(slices.Clone(o.ports), func(c providers.Claim) bool { return slices.Contains(w.Frees, c) })
	case "unmark":
		o.mark = providers.Mark{}
	case "delete":
		delete(m.objects, w.Object)
		r.Gone = true
		return r, nil
	case "wait_ssh", "upload":
	}
	running := o.running
	r.Running = &running
	r.Fingerprint = o.fingerprint(w.Object)
	return r, nil
}
