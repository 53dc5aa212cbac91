package providertest

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

func diskLife(s *stage) {
	before := s.Traces()
	cache := s.disk("cache")
	if o := cache.find(); o != nil {
		s.t.Fatalf("an empty system has %+v", o)
	}
	c := cache.change(providers.Create)
	steps := cache.steps(c)
	same(s.t, "the phases of a disk's creation", "make", phases(steps))
	all := cache.create()
	last := all[len(all)-1].result
	if last.Running != nil {
		s.t.Errorf("a disk that was made says running = %t", *last.Running)
	}
	o := cache.object()
	cache.checkDisk(o)
	same(s.t, "what is observed is what the last step left", last.Fingerprint, o.Fingerprint)
	same(s.t, "what it holds is what its making took", steps[0].Takes, o.Holds)
	for name, v := range last.Values.AsValueMap() {
		if !cache.Type.Kinds[spec.Disk][name].Computed {
			s.t.Errorf("a step returned the value of %s, which is not computed", name)
		}
		if shown := ctyread.Attr(o.Attrs, name); shown == cty.NilVal || !shown.RawEquals(v) {
			s.t.Errorf("%s is %#v when observed, and the step said %#v", name, shown, v)
		}
	}
	for name, want := range map[string]cty.Value{"id": cty.StringVal(string(cache.id)), "path": cty.NilVal} {
		if v := ctyread.Attr(o.Attrs, name); v == cty.NilVal || want != cty.NilVal && !v.RawEquals(want) {
			s.t.Errorf("%s is %#v", name, v)
		}
	}
	planned := s.Traces()
	again := cache.object()
	s.reopen()
	same(s.t, "the fingerprint from another process's point of view", o.Fingerprint, cache.object().Fingerprint)
	same(s.t, "the fingerprint when nothing changed", o.Fingerprint, again.Fingerprint)
	same(s.t, "observing a disk", planned, s.Traces())
	c = cache.change(providers.Destroy)
	steps = cache.steps(c)
	same(s.t, "the phases of a disk's destruction", "remove", phases(steps))
	all = cache.carryOut(c)
	if !all[len(all)-1].result.Gone {
		s.t.Error("the last step of a destruction does not say that the disk is gone")
	}
	if o := cache.find(); o != nil {
		s.t.Errorf("after its destruction there is %+v", o)
	}
	same(s.t, "what is left after a destruction", before, s.Traces())
}

// claim returns the claim on the disk itself.
func (a *actor) claim() providers.Claim {
	return providers.Claim{Kind: providers.ClaimDisk, Key: string(a.id)}
}

// checkDisk checks the attributes and the mark of a disk that vmctl made.
func (a *actor) checkDisk(o providers.Object) {
	a.t.Helper()
	a.checkMark(o)
	if o.Running != nil || o.State != "" {
		a.t.Errorf("a disk is %q, running %v", o.State, o.Running)
	}
	if len(o.Findings) > 0 || len(o.Unreadable) > 0 {
		a.t.Errorf("there is something wrong with it: %+v %v", o.Findings, o.Unreadable)
	}
	if o.Fingerprint == "" {
		a.t.Error("it has no fingerprint")
	}
	for _, name := range []string{"size", "format"} {
		if v := ctyread.Attr(o.Attrs, name); v == cty.NilVal || !equal(v, ctyread.Attr(a.want, name)) {
			a.t.Errorf("%s is %#v, and was to be %#v", name, v, ctyread.Attr(a.want, name))
		}
	}
}

// verdict returns the verdict of the provider's type on an edit.
func (a *actor) verdict(path string, before, after cty.Value, running bool) providers.Verdict {
	judge := a.Type.Kinds[a.address.Kind][path].Judge
	if judge == nil {
		return providers.Verdict{Applies: providers.Replace, Reason: "there is no judge"}
	}
	return judge(before, after, running)
}

// larger returns the edit that makes a disk larger by 4 MiB.
func (a *actor) larger() Edit {
	return Edit{Path: "size", Value: ctyread.Attr(a.want, "size").Add(cty.NumberIntVal(4 << 20))}
}

// grow makes the disk larger, and checks that its content stays.
func (a *actor) grow() {
	a.t.Helper()
	edit, before := a.larger(), a.object()
	c := a.change(providers.Update, edit)
	if v := c.Edits[0].Verdict; v.Applies != providers.Live || v.Reason == "" {
		a.t.Errorf("growing it is judged %+v", v)
	}
	same(a.t, "the phases of growth", "change", phases(a.steps(c)))
	a.carryOut(c)
	after := a.object()
	a.checkDisk(after)
	if after.Fingerprint == before.Fingerprint {
		a.t.Error("the fingerprint is the same after it grew")
	}
	if !a.Disks.Filled(after) {
		a.t.Error("what was on it is gone after it grew")
	}
}

func growth(s *stage) {
	cache, dev := s.disk("cache"), s.actor("dev")
	cache.create()
	s.Disks.Fill(cache.object())
	cache.grow()
	dev.use(cache)
	dev.create()
	dev.checkMade(dev.object())
	before := dev.object()
	cache.grow()
	same(s.t, "the fingerprint of a VM whose disk grew", before.Fingerprint, dev.object().Fingerprint)
}

func diskVerdicts(s *stage) {
	cache := s.disk("cache")
	size := ctyread.Attr(cache.want, "size")
	smaller := size.Subtract(cty.NumberIntVal(1 << 20))
	for _, running := range []bool{false, true} {
		if v := cache.verdict("size", size, smaller, running); v.Applies != providers.Refused || v.Reason == "" {
			s.t.Errorf("shrinking it is judged %+v", v)
		}
		if v := cache.verdict("format", cty.StringVal("qcow2"), cty.StringVal("raw"), running); v.Applies != providers.Replace {
			s.t.Errorf("another format is judged %+v", v)
		}
	}
}

// halfMade checks a disk whose creation was killed between its first and its last effect.
func halfMade(s *stage) {
	before := s.Traces()
	cache := s.disk("cache")
	cache.create()
	s.Disks.Halve(cache.object())
	if o := cache.find(); o != nil {
		s.t.Fatalf("half a disk is %+v", o)
	}
	cache.create()
	cache.checkDisk(cache.object())
	s.Disks.Fill(cache.object())
	s.Disks.Halve(cache.object())
	c := cache.change(providers.Forget)
	if steps := cache.steps(c); len(steps) > 0 {
		cache.carryOut(c)
		same(s.t, "what is left of half a disk that was forgotten", before, s.Traces())
	}
	cache.create()
	if s.Disks.Filled(cache.object()) {
		s.t.Error("a disk that was made again has what another had")
	}
	cache.carryOut(cache.change(providers.Destroy))
	same(s.t, "what is left after a destruction", before, s.Traces())
}

func diskExact(s *stage) {
	cache, dev := s.disk("cache"), s.actor("dev")
	cache.insist(cache.change(providers.Create))
	cache.insist(cache.change(providers.Update, cache.larger()))
	cache.address.Name, cache.was = "store", []spec.Address{cache.address}
	c := cache.marked()
	c.Kind = spec.Disk
	cache.insist(c)
	cache.checkDisk(cache.object())
	dev.create()
	dev.uses = []*actor{cache}
	dev.insist(dev.change(providers.Update, disks(cache)))
	dev.insist(dev.change(providers.RestartIt, disks()))
	dev.carryOut(dev.change(providers.Stop))
	dev.uses = nil
	dev.insist(dev.change(providers.Destroy))
	cache.insist(cache.change(providers.Destroy))
}

func foreignDisk(s *stage) {
	cache := s.disk("cache")
	_, look := s.Disks.Foreign(cache.name)
	before := look()
	c := cache.change(providers.Create)
	steps := cache.steps(c)
	inv := cache.see()
	i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool { return o.Kind == spec.Disk && o.Name == cache.name })
	if i < 0 {
		s.t.Fatalf("another's disk of our name is not seen: %+v", inv)
	}
	o := inv.Objects[i]
	if o.Owner != nil || o.ID == cache.id || o.Fingerprint == "" {
		s.t.Errorf("another's disk is seen as %+v", o)
	}
	if len(steps[0].Takes) == 0 || !slices.Contains(o.Holds, steps[0].Takes[0]) {
		s.t.Errorf("it holds %v, and making ours takes %v", o.Holds, steps[0].Takes)
	}
	_, failure := cache.try(c)
	if failure == nil || failure.Outcome != providers.Unsafe && failure.Outcome != providers.Stale || len(failure.Next) == 0 {
		s.t.Errorf("making a disk of a name that is taken: %+v", failure)
	}
	// A plan that mistakes the disk for ours is refused as well.
	c = cache.change(providers.Destroy)
	c.Object, c.ID = &o, o.ID
	if _, failure := cache.try(c); failure == nil || failure.Outcome != providers.Unsafe {
		s.t.Errorf("destroying another's disk: %+v", failure)
	}
	same(s.t, "another's disk", before, look())
}

// unreachableDisk checks that a system without an answer is not mistaken for a system without
// disks.
func unreachableDisk(s *stage) {
	cache := s.disk("cache")
	create := cache.change(providers.Create)
	cache.create()
	destroy := cache.change(providers.Destroy)
	s.Cut(s.World)
	s.reopen()
	inv := cache.see()
	if inv.Partial[spec.Disk] == nil || len(inv.Objects) > 0 {
		s.t.Errorf("a system that does not answer shows %+v, and is partial because %v", inv.Objects, inv.Partial[spec.Disk])
	}
	for _, c := range []providers.Change{create, destroy} {
		if _, failure := cache.try(c); failure == nil {
			s.t.Errorf("%s on a system that does not answer succeeds", c.Action)
		}
	}
}

func diskPure(s *stage) {
	cache := s.disk("cache")
	before := s.Traces()
	o := &providers.Object{
		Kind: spec.Disk, ID: cache.id, Name: cache.name, Fingerprint: "f",
		Owner: &providers.Mark{ID: cache.Settings.Project.Lineage(), Address: cache.address, Of: cache.id, Generation: 1},
		Attrs: cty.EmptyObjectVal, Holds: []providers.Claim{{Kind: "name", Key: cache.name}},
	}
	for _, action := range actions() {
		if action == providers.RestartIt || action == providers.Start || action == providers.Stop {
			continue // nothing of a disk runs
		}
		for _, alter := range []func(*providers.Change){
			func(*providers.Change) {},
			func(c *providers.Change) { c.Edits = []providers.Edit{{Path: "size", After: cache.larger().Value}} },
			func(c *providers.Change) { c.Mark = &providers.MarkEdit{} },
		} {
			c := providers.Change{
				Address: cache.address, Kind: spec.Disk, Action: action, Name: cache.name, ID: cache.id, Object: o,
				Want: cache.want, Policy: cache.policy, Generation: 2,
			}
			alter(&c)
			switch action {
			case providers.Create:
				c.Object = nil
			case providers.Destroy:
				c.Want = cty.NilVal
			case providers.Forget:
				c.Object, c.Want = nil, cty.NilVal
			case providers.ReplaceIt:
				c.ID = "99999999-2222-8333-8444-555555555555"
			case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Stop, providers.Adopt, providers.Release, providers.Recover, providers.NoOp:
			}
			cache.checkSteps(c)
		}
	}
	same(s.t, "planning", before, s.Traces())
}
