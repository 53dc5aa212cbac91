package providertest

import (
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// forwarding returns the edit that gives a VM these ports of the host.
func forwarding(ports ...string) Edit {
	var all []cty.Value
	for i, port := range ports {
		all = append(all, cty.ObjectVal(map[string]cty.Value{
			"guest": cty.NumberIntVal(int64(8080 + i)), "host": cty.StringVal(port),
			"host_ip": cty.StringVal("127.0.0.1"), "protocol": cty.StringVal("tcp"),
		}))
	}
	return Edit{Path: "port_forward", Value: cty.ListVal(all)}
}

// yielding makes a VM that is off and has two disks and two ports. It returns the claim on
// one of these ports.
func (s *stage) yielding() (one, cache, store *actor, port providers.Claim) {
	s.t.Helper()
	cache, store, one = s.disk("cache"), s.disk("store"), s.actor("one")
	cache.create()
	store.create()
	forward := forwarding("48392", "48394")
	one.want = with(with(one.want, "running", cty.False), forward.Path, forward.Value)
	one.use(cache, store)
	one.create()
	for _, c := range one.object().Holds {
		if c.Kind == providers.ClaimPort && strings.Contains(c.Key, "48392") {
			port = c
		}
	}
	if port.Key == "" {
		s.t.Fatalf("its port is no claim of %v", one.object().Holds)
	}
	return one, cache, store, port
}

// frees does the first step of a change. It checks that the step frees just these claims and
// changes nothing else of the object. It returns the other steps, and the fingerprint that
// the next one expects.
func (a *actor) frees(c providers.Change, claims ...providers.Claim) (rest []providers.Step, expect string) {
	a.t.Helper()
	before := a.object()
	steps := a.steps(c)
	if len(steps) == 0 || steps[0].Phase != providers.PhaseFree {
		a.t.Fatalf("the phases of a change that yields something are %s", phases(steps))
	}
	same(a.t, "what the first step frees", claims, steps[0].Frees)
	for _, step := range steps[1:] {
		if slices.ContainsFunc(step.Frees, func(c providers.Claim) bool { return slices.Contains(claims, c) }) {
			a.t.Errorf("%s frees again what is free: %v", step.Op, step.Frees)
		}
	}
	w := a.work(c, steps[0], before.Fingerprint)
	stale := w
	stale.Expect += " changed"
	if _, failure := a.do(a.t.Context(), stale); failure == nil || failure.Outcome != providers.Stale {
		a.t.Errorf("%s of what was changed meanwhile: %+v", w.Op, failure)
	}
	same(a.t, "the fingerprint after a step that was refused", before.Fingerprint, a.object().Fingerprint)
	r, failure := a.do(a.t.Context(), w)
	if failure != nil {
		a.t.Fatalf("%s: %v", w.Op, failure)
	}
	after := a.object()
	same(a.t, "the fingerprint that the step reports", after.Fingerprint, r.Fingerprint)
	same(a.t, "the mark", before.Owner, after.Owner)
	same(a.t, "the run state", before.State, after.State)
	kept := slices.DeleteFunc(slices.Clone(before.Holds), func(c providers.Claim) bool { return slices.Contains(claims, c) })
	same(a.t, "what it holds", kept, after.Holds)
	for name, v := range before.Attrs.AsValueMap() {
		if name != "additional_disk" && name != "port_forward" && !ctyread.Attr(after.Attrs, name).RawEquals(v) {
			a.t.Errorf("%s was %#v, and is %#v", name, v, ctyread.Attr(after.Attrs, name))
		}
	}
	again, failure := a.do(a.t.Context(), w)
	if failure != nil || again.How != providers.AlreadyTrue {
		a.t.Errorf("%s, done again: %+v, %v", w.Op, again, failure)
	}
	same(a.t, "the fingerprint, done again", r.Fingerprint, a.object().Fingerprint)
	return steps[1:], r.Fingerprint
}

// finish does the other steps of a change.
func (a *actor) finish(c providers.Change, rest []providers.Step, expect string) {
	a.t.Helper()
	for _, step := range rest {
		r, failure := a.do(a.t.Context(), a.work(c, step, expect))
		if failure != nil {
			a.t.Fatalf("%s: %v", step.Op, failure)
		}
		expect = r.Fingerprint
	}
	a.want, a.generation = c.Want, c.Generation
}

// yieldsDisk checks that a VM gives up the disk that another takes: the other can have it
// before the rest of the change is made.
func yieldsDisk(s *stage) {
	one, cache, store, _ := s.yielding()
	two := s.actor("two")
	two.want = with(two.want, "running", cty.False)
	two.create()
	c := one.change(providers.Update, disks(store))
	c.Yields = []providers.Claim{cache.claim()}
	same(s.t, "the phases", "free, change", phases(one.steps(c)))
	rest, expect := one.frees(c, cache.claim())
	one.uses, two.uses = []*actor{store}, []*actor{cache}
	one.holds(store)
	two.carryOut(two.change(providers.Update, disks(cache)))
	two.holds(cache)
	one.finish(c, rest, expect)
	one.holds(store)
	one.checkMark(one.object())
}

// yieldsPort checks that a VM gives up the port that another takes.
func yieldsPort(s *stage) {
	one, cache, store, port := s.yielding()
	next := forwarding("48393", "48394")
	c := one.change(providers.Update, next)
	c.Yields = []providers.Claim{port}
	rest, expect := one.frees(c, port)
	one.holds(cache, store)
	two := s.actor("two")
	forward := forwarding("48392")
	two.want = with(with(two.want, "running", cty.False), forward.Path, forward.Value)
	two.create()
	if !slices.Contains(two.object().Holds, port) {
		s.t.Errorf("who takes the port holds %v", two.object().Holds)
	}
	one.finish(c, rest, expect)
	if v := ctyread.Attr(one.object().Attrs, next.Path); v == cty.NilVal || !equal(v, next.Value) {
		s.t.Errorf("its port is %#v", v)
	}
}

// yieldsChosenPort checks that a VM holds a port that the kernel chose for it until it goes down.
// It comes up with another one if another VM takes that port.
func yieldsChosenPort(s *stage) {
	one, two := s.actor("one"), s.actor("two")
	forward := forwarding("auto")
	one.want = with(one.want, forward.Path, forward.Value)
	one.create()
	before, chosen := one.object(), one.hostPort()
	port := providers.Claim{Kind: providers.ClaimPort, Key: "127.0.0.1:" + chosen + "/tcp"}
	if !slices.Contains(before.HoldsUp, port) || slices.Contains(before.Holds, port) {
		s.t.Fatalf("it holds %v, and %v until it goes down, which was to have %v", before.Holds, before.HoldsUp, port)
	}
	c := one.change(providers.RestartIt)
	c.Yields = []providers.Claim{port}
	steps := one.steps(c)
	same(s.t, "the phases", "down, up, ready", phases(steps))
	same(s.t, "what the stop frees", c.Yields, steps[0].Frees)
	one.carryOut(c)
	if one.hostPort() == chosen {
		s.t.Errorf("it came up with port %s again, which another takes", chosen)
	}
	forward = forwarding(chosen)
	two.want = with(two.want, forward.Path, forward.Value)
	two.create()
	two.checkMade(two.object())
	two.carryOut(two.change(providers.Stop))
	if takes := two.steps(two.change(providers.Start))[0].Takes; !slices.Contains(takes, port) {
		s.t.Errorf("its start takes %v, and was to take %v", takes, port)
	}
}

// hostPort returns the host port that leads to the first port of forwarding.
func (a *actor) hostPort() string {
	a.t.Helper()
	ports := ctyread.Attr(a.object().Attrs, "ports").AsValueMap()
	port, ok := ports["8080"]
	if !ok {
		a.t.Fatalf("no host port leads to 8080: %v", ports)
	}
	return port.AsBigFloat().String()
}

// keepsWhatItWants checks that a VM keeps the claims that it wants, though another takes
// them.
func keepsWhatItWants(s *stage) {
	one, cache, store, port := s.yielding()
	c := one.change(providers.Update, disks(cache))
	c.Yields = []providers.Claim{cache.claim(), port}
	same(s.t, "the phases", "change", phases(one.steps(c)))
	one.carryOut(c)
	one.uses = []*actor{cache}
	one.holds(cache)
	if slices.Contains(one.object().Holds, store.claim()) {
		s.t.Error("it holds what it has no more")
	}
}

// yieldsWhileDown checks that a running VM gives up a claim once it is down, and starts
// without it.
func yieldsWhileDown(s *stage) {
	cache, dev := s.disk("cache"), s.actor("dev")
	cache.create()
	dev.use(cache)
	dev.create()
	c := dev.change(providers.RestartIt, disks())
	c.Yields = []providers.Claim{cache.claim()}
	same(s.t, "the phases", "down, free, change, up, ready", phases(dev.steps(c)))
	same(s.t, "what is freed", []providers.Claim{cache.claim()}, freed(dev.steps(c)))
	dev.carryOut(c)
	dev.checkMade(dev.object())
	dev.uses = nil
	dev.holds()
}

// letGo checks that the mark of a running VM can be removed, and the VM stays as it is.
func letGo(s *stage) {
	dev := s.actor("dev")
	dev.create()
	before := dev.object()
	c := dev.change(providers.Forget)
	c.Want = cty.NilVal
	steps := dev.steps(c)
	same(s.t, "the phases", "tidy", phases(steps))
	if steps[0].Risk != providers.NoRisk || len(steps[0].Frees)+len(steps[0].Takes) > 0 {
		s.t.Errorf("the step is %+v", steps[0])
	}
	w := dev.work(c, steps[0], before.Fingerprint)
	stale := w
	stale.Expect += " changed"
	if _, failure := s.do(s.t.Context(), stale); failure == nil || failure.Outcome != providers.Stale {
		s.t.Errorf("letting go of what was changed meanwhile: %+v", failure)
	}
	dev.checkMade(dev.object())
	if r, failure := s.do(s.t.Context(), w); failure != nil || r.Gone || r.How != providers.Done {
		s.t.Fatalf("letting go: %+v, %v", r, failure)
	}
	after := dev.object()
	if after.Owner != nil {
		s.t.Errorf("it bears the mark %+v", after.Owner)
	}
	same(s.t, "the run state", before.State, after.State)
	same(s.t, "what it holds", before.Holds, after.Holds)
	for _, name := range []string{"cpus", "memory"} {
		if !ctyread.Attr(after.Attrs, name).RawEquals(ctyread.Attr(before.Attrs, name)) {
			s.t.Errorf("%s was %#v, and is %#v", name, ctyread.Attr(before.Attrs, name), ctyread.Attr(after.Attrs, name))
		}
	}
	traces := s.Traces()
	if r, failure := s.do(s.t.Context(), w); failure != nil || r.Gone || r.How != providers.AlreadyTrue {
		s.t.Errorf("letting go again: %+v, %v", r, failure)
	}
	if diff := cmp.Diff(traces, s.Traces()); diff != "" {
		s.t.Errorf("letting go again changed something (-before +after):\n%s", diff)
	}
	dev.notMadeOf(after)
	s.Kill(after)
}

// notMadeOf checks that every step refuses an unmarked VM with the ID that was chosen for the
// VM to be made. A reserved record proves nothing: Prior is absent.
func (a *actor) notMadeOf(o providers.Object) {
	a.t.Helper()
	before := a.Traces()
	for _, action := range []providers.Action{providers.Stop, providers.Destroy, providers.Forget} {
		c := a.change(action)
		w := a.work(c, a.steps(c)[0], o.Fingerprint)
		w.Prior = cty.NilVal
		if r, failure := a.do(a.t.Context(), w); (failure == nil || failure.Outcome != providers.Unsafe) && r.How != providers.AlreadyTrue {
			a.t.Errorf("%s of a VM that was let go of: %+v, %+v", action, r, failure)
		}
	}
	c := a.change(providers.Create)
	c.Object, c.Name = nil, o.Name
	if _, failure := a.do(a.t.Context(), a.work(c, a.steps(c)[0], "")); failure == nil || failure.Outcome != providers.Unsafe {
		a.t.Errorf("making a VM of one that was let go of: %+v", failure)
	}
	same(a.t, "what is there after that", before, a.Traces())
}

// letGoOfDisk checks that the mark of a disk can be removed, and the disk stays with its
// content.
func letGoOfDisk(s *stage) {
	cache := s.disk("cache")
	cache.create()
	before := cache.object()
	s.Disks.Fill(before)
	before = cache.object()
	c := cache.change(providers.Forget)
	steps := cache.steps(c)
	same(s.t, "the phases", "tidy", phases(steps))
	r, failure := s.do(s.t.Context(), cache.work(c, steps[0], before.Fingerprint))
	if failure != nil || r.Gone || r.How != providers.Done {
		s.t.Fatalf("letting go: %+v, %v", r, failure)
	}
	if !s.Disks.Filled(before) {
		s.t.Error("what was on the disk is gone")
	}
	all := cache.see().Objects // VMs of other projects that hold host ports too
	i := slices.IndexFunc(all, func(o providers.Object) bool { return o.Kind == spec.Disk && o.Name == before.Name })
	if i < 0 {
		s.t.Fatalf("%s is not seen among %+v", before.Name, all)
	}
	if o := all[i]; o.Owner != nil {
		s.t.Errorf("%s bears the mark %+v", o.Name, o.Owner)
	}
}
