package cli_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guest"
	recipe "vmctl/providers/machine"
	"vmctl/spec"
)

// memory is a host that keeps its VMs as values. It outlives the commands of a test, as a
// real host does. A test declares its failures.
type memory struct {
	mu        sync.Mutex
	machines  map[providers.ID]*machine
	fail      map[string]*providers.Problem // "op address" -> how it fails
	hold      map[string]chan struct{}      // "op address" -> the step ends when it is closed
	reports   map[string][]condition.Report // "op address" -> what it reports before that
	entered   chan string                   // "op address", as each begins; nil: nobody listens
	partial   *providers.Problem            // why nothing can be listed; nil: it can
	missing   *providers.Problem            // what the host lacks for VMs; nil: nothing
	blind     *providers.Problem            // why its facts cannot be read; nil: they can
	facts     map[string]string
	unknown   map[string]string // name -> why it cannot be read
	port      int               // of SSH
	acted     []string          // "op address", in order
	consoles  map[string]string // by object's name; other objects have no console
	nameLimit int
	mute      chan struct{} // the host answers once it is closed; nil: at once
	asked     func()        // called before a console is read; may be nil
	panics    string        // the call that panics: "observe", or "op address"
	observed  int           // how often it was observed

	fetch func(ctx context.Context, template string) (string, error) // returns the text of a template by its place; nil: it has no templates
}

type machine struct {
	name  string
	mark  *providers.Mark
	state string
	attrs map[string]cty.Value
}

func newMemory() *memory {
	return &memory{
		machines: map[providers.ID]*machine{}, fail: map[string]*providers.Problem{}, hold: map[string]chan struct{}{},
		unknown: map[string]string{}, port: 1, facts: map[string]string{"memory": "version 1"},
	}
}

// types returns a provider type of that host, under the name of a type that has a shape.
func (m *memory) types() providers.Types {
	live := func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: "at once"}
	}
	restart := func(_, _ cty.Value, running bool) providers.Verdict {
		if running {
			return providers.Verdict{Applies: providers.Restart, Reason: "the guest sees it when it starts"}
		}
		return providers.Verdict{Applies: providers.Live, Reason: "at the next start"}
	}
	system := providers.Type{
		Name: "libvirt", NameLimit: m.nameLimit, Produces: map[spec.Kind][]string{spec.VM: {"ssh.ready"}},
		Kinds: map[spec.Kind]map[string]providers.Attribute{spec.VM: {
			"name": {}, "running": {Judge: live}, "cpus": {Judge: live}, "memory": {Judge: restart}, "accel": {Judge: live},
			"boot": {}, "port_forward": {Judge: restart}, "ssh": {Judge: live},
			"id": {Computed: true}, "address": {Computed: true}, "ssh_port": {Computed: true}, "ports": {Computed: true},
		}},
		Resolve: func(attrs cty.Value) cty.Value { return attrs },
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			if uri := s.Attrs.GetAttr("uri"); !uri.IsNull() && uri.AsString() == "bad:" {
				return nil, errors.New(`uri = "bad:" is no connection`)
			}
			return host{memory: m, project: s.Project, keys: s.Keys}, nil
		},
	}
	if m.fetch != nil {
		system.Kinds[spec.VM]["template"] = providers.Attribute{Judge: live}
		system.Elsewhere, system.Expand = templateElsewhere, m.expand
	}
	return providers.Types{Systems: map[string]providers.Type{"libvirt": system}}
}

// templateElsewhere is providers.Type.Elsewhere: a template is named by its place.
func templateElsewhere(_ spec.Kind, want cty.Value) string {
	if strings.HasPrefix(ctyread.Text(want, "template"), "template:") {
		return "template"
	}
	return ""
}

func (m *memory) expand(ctx context.Context, _ spec.Kind, want cty.Value, _ string) (cty.Value, *spec.Flaw) {
	text, err := m.fetch(ctx, ctyread.Text(want, "template"))
	if err != nil {
		return want, &spec.Flaw{Path: "template", Summary: "Unreadable template", Detail: "Its whole text cannot be had: " + err.Error() + "."}
	}
	all := want.AsValueMap()
	all["template"] = cty.StringVal(text)
	return cty.ObjectVal(all), nil
}

// host is the memory, opened for a project.
type host struct {
	*memory
	project providers.Project
	keys    string
}

var (
	_ providers.Provider = host{}
	_ providers.Reacher  = host{}
	_ providers.Host     = host{}

	_ providers.ConsoleReader = host{}
)

func (h host) Console(_ context.Context, o providers.Object, from int64, most int) (providers.Console, error) {
	if h.asked != nil {
		h.asked()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	text, ok := h.consoles[o.Name]
	if !ok {
		return providers.Console{}, &providers.Problem{Outcome: providers.Failed, Code: "no_console", Next: providers.Vmctl("plan"), Err: errors.New("nobody keeps it")}
	}
	start, length := providers.PartOf(int64(len(text)), from, most)
	return providers.Console{
		Text: []byte(text[start : start+length]), Start: start, More: h.machines[o.ID].state == providers.StateRunning,
	}, nil
}

func (h host) Reach(o providers.Object, values cty.Value) (providers.Login, error) {
	if !o.Attrs.Type().HasAttribute("ssh_port") {
		return providers.Login{}, errors.New("it is off")
	}
	port, _ := o.Attrs.GetAttr("ssh_port").AsBigFloat().Int64()
	ssh, keys := values.GetAttr("ssh"), filepath.Join(h.keys, o.Name)
	return providers.Login{
		Address: "127.0.0.1", Port: int(port), User: ssh.GetAttr("user").AsString(), Alias: o.Name,
		IdentityFile: filepath.Join(keys, "id_ed25519"), KnownHosts: filepath.Join(keys, "known_hosts"),
		AcceptNew: ssh.GetAttr("host_key").AsString() == "accept-new",
	}, nil
}

func (h host) Enter(_ context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	return guest.Enter(h, o, values)
}

func (h host) Close() error { return nil }

func (h host) Observe(_ context.Context, _ providers.Query) (providers.Inventory, error) {
	if h.mute != nil {
		<-h.mute
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed++
	if h.panics == "observe" {
		panic("planted")
	}
	inv := providers.Inventory{Host: h.facts, Blind: h.blind}
	if h.missing != nil {
		inv.Missing = map[spec.Kind]*providers.Problem{spec.VM: h.missing}
	}
	if h.partial != nil {
		inv.Partial = map[spec.Kind]*providers.Problem{spec.VM: h.partial}
		return inv, nil
	}
	for id, o := range h.machines {
		if why, ok := h.unknown[o.name]; ok {
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: spec.VM, ID: id, Name: o.name, Reason: why})
			continue
		}
		inv.Objects = append(inv.Objects, o.object(id))
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return strings.Compare(a.Name, b.Name) })
	return inv, nil
}

func (o *machine) object(id providers.ID) providers.Object {
	running := o.state == providers.StateRunning
	return providers.Object{
		Kind: spec.VM, ID: id, Name: o.name, Owner: o.mark, Running: &running, State: o.state,
		Attrs: cty.ObjectVal(o.attrs), Fingerprint: o.fingerprint(id),
	}
}

func (o *machine) fingerprint(id providers.ID) string {
	return fmt.Sprint(id, o.name, o.state, o.mark, o.attrs["memory"].GoString())
}

func (h host) Steps(c providers.Change) ([]providers.Step, error) {
	var steps []providers.Step
	add := func(op string, phase providers.Phase, risk providers.Risk) {
		s := providers.Step{
			Op: op, Words: recipe.Words(op), Phase: phase, Address: c.Address, Object: c.ID, Name: c.Name, Class: providers.Contractual, Risk: risk,
			Timeout: time.Hour,
		}
		if len(steps) > 0 {
			s.After = []int{len(steps) - 1}
		}
		steps = append(steps, s)
	}
	wantOn := c.Want != cty.NilVal && c.Want.GetAttr("running").True()
	switch c.Action {
	case providers.Stop, providers.RestartIt, providers.ReplaceIt, providers.Destroy:
		if c.Object.State != providers.StateOff {
			add("stop", providers.PhaseDown, providers.Downtime)
		}
	case providers.Create, providers.Update, providers.Import, providers.Start, providers.Adopt, providers.Forget, providers.Release, providers.Recover, providers.NoOp:
	}
	switch {
	case c.Action == providers.Destroy:
		add("delete", providers.PhaseRemove, providers.DataLoss)
		return steps, nil
	case c.Action == providers.ReplaceIt:
		add("delete", providers.PhaseRemove, providers.DataLoss)
		add("define", providers.PhaseMake, providers.NoRisk)
	case c.Action == providers.Create:
		add("define", providers.PhaseMake, providers.NoRisk)
	case c.Alters():
		add("redefine", providers.PhaseChange, providers.NoRisk)
	}
	if wantOn && c.Action != providers.Update {
		add("start", providers.PhaseUp, providers.NoRisk)
		add("wait_ssh", providers.PhaseReady, providers.NoRisk)
		steps[len(steps)-1].Condition = "ssh.ready"
	}
	return steps, nil
}

func (h host) Do(ctx context.Context, w providers.Work, log providers.Log) (providers.Result, error) {
	key := w.Op + " " + w.Address.String()
	if h.panics == key {
		panic("planted")
	}
	h.mu.Lock()
	hold, failure, entered, reports := h.hold[key], h.fail[key], h.entered, h.reports[key]
	h.mu.Unlock()
	if entered != nil {
		entered <- key
	}
	log(providers.Progress{Text: w.Op + " is under way"})
	for _, r := range reports {
		log(providers.Progress{Condition: &r})
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return providers.Result{}, &providers.Problem{Outcome: providers.Timeout, Code: "late", Err: errors.New(w.Op + ": no answer in time")}
		}
	}
	if failure != nil {
		return providers.Result{}, failure
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acted = append(h.acted, key)
	return h.act(w)
}

func (h host) act(w providers.Work) (providers.Result, error) {
	o := h.machines[w.Object]
	r := providers.Result{ID: w.Object, How: providers.Done}
	switch w.Op {
	case "define", "redefine":
		state := providers.StateOff
		if o != nil {
			state = o.state
		}
		o = &machine{name: w.Name, state: state, attrs: w.Want.AsValueMap()}
		o.mark = &providers.Mark{
			ID: h.project.Lineage(), Project: h.project.Name, Address: w.Address, Of: w.Object, Generation: w.Generation,
		}
		delete(o.attrs, "running")
		o.attrs["id"] = cty.StringVal(string(w.Object))
		h.machines[w.Object] = o
		r.Values = cty.ObjectVal(map[string]cty.Value{"id": o.attrs["id"]})
	case "start":
		o.state = providers.StateRunning
		o.attrs["address"], o.attrs["ssh_port"] = cty.StringVal("127.0.0.1"), cty.NumberIntVal(int64(h.port))
		r.Values = cty.ObjectVal(map[string]cty.Value{"address": o.attrs["address"], "ssh_port": o.attrs["ssh_port"]})
	case "stop":
		o.state, r.How = providers.StateOff, providers.Graceful
		delete(o.attrs, "ssh_port")
	case "delete":
		delete(h.machines, w.Object)
		r.Gone = true
		return r, nil
	case "wait_ssh":
	default:
		panic("unknown operation " + w.Op)
	}
	running := o.state == providers.StateRunning
	r.Running, r.Fingerprint = &running, o.fingerprint(w.Object)
	return r, nil
}

// machine finds a VM by its object's name.
func (m *memory) machine(name string) *machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.machines {
		if o.name == name {
			return o
		}
	}
	return nil
}
