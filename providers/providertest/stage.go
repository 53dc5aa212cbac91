package providertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// stage is a world and a provider on it. The suite carries changes out on it as an executor
// would.
type stage struct {
	*World
	t        *testing.T
	provider providers.Provider
	made     int // how many IDs were chosen
	tried    int // how many host ports were tried
}

// actor is one address on a stage.
type actor struct {
	*stage
	address    spec.Address
	name       string
	id         providers.ID
	want       cty.Value
	values     cty.Value // as a record would have them
	generation uint64
	was        []spec.Address // earlier addresses
	policy     cty.Value
	uses       []*actor     // disks
	imports    providers.ID // the name of the object to import at this address; "": the address is made new
}

// done is a step with its result.
type done struct {
	work   providers.Work
	result providers.Result
}

func newStage(t *testing.T, w *World) *stage {
	s := &stage{World: w, t: t}
	s.open()
	t.Cleanup(func() { s.close() })
	return s
}

// freePort returns a host port that nobody listens on, below the range that Linux gives to
// connections (32768 to 60999, net.ipv4.ip_local_port_range), and another one at each call. Runs
// and tests side by side begin at different ports.
func (s *stage) freePort() string {
	s.t.Helper()
	const first, many = 20000, 12000
	begin := fnv.New32a()
	fmt.Fprint(begin, s.t.Name())
	for s.tried < many {
		s.tried++
		address := fmt.Sprintf("127.0.0.1:%d", first+(os.Getpid()*37+int(begin.Sum32()%many)+s.tried)%many)
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				s.t.Fatal(err)
			}
			_, port, _ := strings.Cut(address, ":")
			return port
		}
	}
	s.t.Fatal("no host port is free")
	return ""
}

func (s *stage) open() {
	s.t.Helper()
	p, err := s.Type.Open(s.t.Context(), s.Settings)
	if err != nil {
		s.t.Fatalf("open: %v", err)
	}
	s.provider = p
}

func (s *stage) close() {
	s.t.Helper()
	if s.provider == nil {
		return
	}
	if err := s.provider.Close(); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.provider = nil
}

// reopen opens a new provider that knows nothing of the earlier one.
func (s *stage) reopen() {
	s.t.Helper()
	s.close()
	s.open()
}

func (s *stage) actor(label string) *actor {
	return &actor{
		stage: s, address: spec.Address{Kind: spec.VM, Name: label}, name: s.Settings.Project.Name + "." + label,
		id: s.newID(), want: s.Want, values: cty.NilVal, generation: 1, policy: s.Policy,
	}
}

// disk returns an actor for a disk.
func (s *stage) disk(label string) *actor {
	a := s.actor(label)
	a.address.Kind, a.want, a.policy = spec.Disk, s.Disks.Want, s.Disks.Policy
	return a
}

// network returns an actor for a network for VMs. The network "two" has another prefix than all others.
func (s *stage) network(label string) *actor {
	cidr := "10.77.0.0/24"
	if label == "two" {
		cidr = "10.78.0.0/24"
	}
	a := s.actor(label)
	a.address.Kind, a.policy = spec.Network, s.Disks.Policy
	a.want = put(put(s.baseOf(spec.Network), spec.WantType(spec.Network), "cidr", cty.StringVal(cidr)), spec.WantType(spec.Network), "internal", cty.False)
	return a
}

// newID chooses an ID that no other stage chooses: several may share a system.
func (s *stage) newID() providers.ID {
	s.made++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", s.Settings.Project.Lineage(), s.made))
	id := hex.EncodeToString(sum[:16])
	return providers.ID(id[:8] + "-" + id[8:12] + "-8" + id[13:16] + "-8" + id[17:20] + "-" + id[20:])
}

func (s *stage) observe(known ...providers.Known) providers.Inventory {
	s.t.Helper()
	inv, err := s.provider.Observe(s.t.Context(), providers.Query{Known: known})
	if err != nil {
		s.t.Fatalf("observe: %v", err)
	}
	return inv
}

func (a *actor) known() providers.Known {
	k := providers.Known{Address: a.address, Kind: a.address.Kind, ID: a.id, Name: a.name, Prior: a.values, Want: a.want, Import: a.imports}
	if a.imports != "" {
		k.ID = ""
	}
	return k
}

// see observes the actor with all that it uses.
func (a *actor) see() providers.Inventory {
	a.t.Helper()
	known := []providers.Known{a.known()}
	for _, used := range a.uses {
		known = append(known, used.known())
	}
	return a.observe(known...)
}

// used describes the resources that the actor uses, as a change needs them.
func (a *actor) used() map[spec.Address]providers.Used {
	all := map[spec.Address]providers.Used{}
	for _, used := range a.uses {
		all[used.address] = providers.Used{Kind: used.address.Kind, ID: used.id, Name: used.name}
	}
	return all
}

// find observes, and returns the actor's object; nil: it is absent.
func (a *actor) find() *providers.Object {
	a.t.Helper()
	inv := a.see()
	if why, partial := inv.Partial[a.address.Kind]; partial {
		a.t.Fatalf("the listing is incomplete: %s", why)
	}
	for _, u := range inv.Unknown {
		if u.Kind == a.address.Kind && (u.ID == a.id || u.Name == a.name) {
			a.t.Fatalf("%s could not be read: %s", a.name, u.Reason)
		}
	}
	for i, o := range inv.Objects {
		if o.Kind == a.address.Kind && o.ID == a.id {
			return &inv.Objects[i]
		}
	}
	return nil
}

// object returns the actor's object, and fails the test if it is absent.
func (a *actor) object() providers.Object {
	a.t.Helper()
	o := a.find()
	if o == nil {
		a.t.Fatalf("%s (%s) is absent", a.name, a.id)
	}
	return *o
}

// change returns the change that a planner would make now for an action.
func (a *actor) change(action providers.Action, edits ...Edit) providers.Change {
	a.t.Helper()
	o := a.find()
	c := providers.Change{
		Address: a.address, Kind: a.address.Kind, Action: action, Name: a.name, ID: a.id, Object: o, Uses: a.used(),
		Prior: a.values, Want: a.want, Policy: a.Policy, Generation: a.generation, Was: a.was,
	}
	if a.address.Kind != spec.VM { // a VM is treated as the world says now
		c.Policy = a.policy
	}
	for _, e := range edits {
		before := ctyread.Attr(o.Attrs, e.Path)
		judge := a.Type.Kinds[a.address.Kind][e.Path].Judge
		if judge == nil {
			a.t.Fatalf("an edit of %s replaces it", e.Path)
		}
		c.Edits = append(c.Edits, providers.Edit{
			Path: e.Path, Before: before, After: e.Value, Verdict: judge(before, e.Value, o.Running != nil && *o.Running),
		})
		c.Want = with(c.Want, e.Path, e.Value)
	}
	if len(edits) > 0 {
		c.Generation++
	}
	if action == providers.Destroy {
		c.Want = cty.NilVal
	}
	return c
}

// steps returns the steps of a change.
func (a *actor) steps(c providers.Change) []providers.Step {
	a.t.Helper()
	steps, err := a.provider.Steps(c)
	if err != nil {
		a.t.Fatalf("steps of %s: %v", c.Action, err)
	}
	return steps
}

func (a *actor) work(c providers.Change, step providers.Step, expect string) providers.Work {
	return providers.Work{
		Step: step, Expect: expect, Prior: a.values, Want: c.Want, Uses: c.Uses, Policy: c.Policy, Generation: c.Generation, Replaced: c.Replaced, Was: c.Was,
	}
}

// do does one step.
func (s *stage) do(ctx context.Context, w providers.Work) (providers.Result, *providers.Problem) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	r, err := s.provider.Do(ctx, w, func(providers.Progress) {})
	if err == nil {
		return r, nil
	}
	var f *providers.Problem
	if !errors.As(err, &f) {
		s.t.Errorf("%s %s: its error is no failure: %v", w.Op, w.Name, err)
		return r, &providers.Problem{Outcome: providers.Failed, Err: err}
	}
	if f.Code == "" || f.Error() == "" || f.Outcome == "" {
		s.t.Errorf("%s %s: a failure without a code, an outcome or a text: %#v", w.Op, w.Name, f)
	}
	return r, f
}

// carryOut carries a change out, and remembers the values of the record.
func (a *actor) carryOut(c providers.Change) []done {
	a.t.Helper()
	all, failure := a.try(c)
	if failure != nil {
		a.t.Fatalf("%s of %s: %v\nseen %q", c.Action, a.name, failure, failure.Seen)
	}
	if c.Action == providers.Destroy {
		a.values = cty.NilVal
		return all
	}
	a.want, a.generation = c.Want, c.Generation
	return all
}

// try carries a change out until a step fails.
func (a *actor) try(c providers.Change) ([]done, *providers.Problem) {
	a.t.Helper()
	expect := map[providers.ID]string{}
	if c.Object != nil {
		expect[c.Object.ID] = c.Object.Fingerprint
	}
	var all []done
	for _, step := range a.steps(c) {
		w := a.work(c, step, expect[step.Object])
		r, failure := a.do(a.t.Context(), w)
		if failure != nil {
			return all, failure
		}
		if r.ID != step.Object && a.imports == "" {
			a.t.Errorf("%s: the result is of %q, and the step was on %q", step.Op, r.ID, step.Object)
		}
		reserves := step.Phase == providers.PhaseReserve && expect[step.Object] == "" // the object is not made yet
		if r.Gone != (r.Fingerprint == "") && !reserves {
			a.t.Errorf("%s: gone is %t, and the fingerprint is %q", step.Op, r.Gone, r.Fingerprint)
		}
		if r.How == "" {
			a.t.Errorf("%s does not say how it ended", step.Op)
		}
		expect[step.Object] = r.Fingerprint
		if r.Values != cty.NilVal {
			a.values = r.Values
		}
		all = append(all, done{work: w, result: r})
	}
	return all, nil
}

// create makes the actor's VM.
func (a *actor) create() []done {
	a.t.Helper()
	return a.carryOut(a.change(providers.Create))
}

// phases returns the phases of steps, in order.
func phases(steps []providers.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, string(s.Phase))
	}
	return strings.Join(all, ", ")
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func with(v cty.Value, name string, value cty.Value) cty.Value {
	m := map[string]cty.Value{}
	maps.Copy(m, v.AsValueMap())
	m[name] = value
	return cty.ObjectVal(m)
}

func isRunning(o providers.Object) bool {
	return o.Running != nil && *o.Running && o.State == providers.StateRunning
}

func isOff(o providers.Object) bool {
	return o.Running != nil && !*o.Running && o.State == providers.StateOff
}
