package providertest

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// disks returns the edit that gives a VM these disks, and no others.
func disks(all ...*actor) Edit {
	shape := cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})
	e := Edit{Path: "additional_disk", Value: cty.ListValEmpty(shape)}
	var values []cty.Value
	for _, a := range all {
		values = append(values, cty.ObjectVal(map[string]cty.Value{
			"disk": cty.StringVal(a.address.String()), "mount_point": cty.NullVal(cty.String),
		}))
	}
	if len(values) > 0 {
		e.Value = cty.ListVal(values)
	}
	return e
}

// use makes the actor want disks from the beginning.
func (a *actor) use(all ...*actor) {
	a.uses = all
	edit := disks(all...)
	a.want = with(a.want, edit.Path, edit.Value)
}

// holds demands that the actor's VM has these disks, shows them, and claims them.
func (a *actor) holds(all ...*actor) {
	a.t.Helper()
	o := a.object()
	if v, want := ctyread.Attr(o.Attrs, "additional_disk"), disks(all...).Value; v == cty.NilVal || !equal(v, want) {
		a.t.Errorf("its disks are %#v, and were to be %#v", v, want)
	}
	var want, got []providers.Claim
	for _, d := range all {
		want = append(want, d.claim())
	}
	for _, c := range o.Holds {
		if c.Kind == providers.ClaimDisk {
			got = append(got, c)
		}
	}
	same(a.t, "its claims on disks", want, got)
}

// taken returns the claims on disks that steps take; freed returns those that they free.
func taken(steps []providers.Step) (claims []providers.Claim) {
	for _, s := range steps {
		claims = append(claims, s.Takes...)
	}
	return onDisks(claims)
}

func freed(steps []providers.Step) (claims []providers.Claim) {
	for _, s := range steps {
		claims = append(claims, s.Frees...)
	}
	return onDisks(claims)
}

func onDisks(all []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(all, func(c providers.Claim) bool { return c.Kind != providers.ClaimDisk })
}

func attachAndDetach(s *stage) {
	cache, store, dev := s.disk("cache"), s.disk("store"), s.actor("dev")
	cache.create()
	store.create()
	dev.use(cache)
	create := dev.change(providers.Create)
	same(s.t, "what making it takes", []providers.Claim{cache.claim()}, taken(dev.steps(create)))
	dev.carryOut(create)
	dev.holds(cache)

	dev.uses = []*actor{cache, store}
	action, applies, order := providers.Update, providers.Live, "change"
	if s.Disks.AtStart {
		action, applies, order = providers.RestartIt, providers.Restart, "down, change, up, ready"
	}
	c := dev.change(action, disks(cache, store))
	if v := c.Edits[0].Verdict; v.Applies != applies || v.Reason == "" {
		s.t.Errorf("attaching a disk to what runs is judged %+v", v)
	}
	same(s.t, "the phases of an attachment", order, phases(dev.steps(c)))
	same(s.t, "what an attachment takes", []providers.Claim{store.claim()}, taken(dev.steps(c)))
	all := dev.carryOut(c)
	if r := all[len(all)-1].result.Running; r == nil || !*r {
		s.t.Errorf("after an attachment it says running = %v", r)
	}
	dev.checkMade(dev.object())
	dev.holds(cache, store)

	c = dev.change(providers.RestartIt, disks(store))
	if v := c.Edits[0].Verdict; v.Applies != providers.Restart || v.Reason == "" {
		s.t.Errorf("detaching a disk from what runs is judged %+v", v)
	}
	same(s.t, "the phases of a detachment", "down, change, up, ready", phases(dev.steps(c)))
	same(s.t, "what a detachment frees", []providers.Claim{cache.claim()}, freed(dev.steps(c)))
	dev.carryOut(c)
	dev.checkMade(dev.object())
	dev.holds(store)
}

func moves(s *stage) {
	before := s.Traces()
	cache, one, two := s.disk("cache"), s.actor("one"), s.actor("two")
	cache.create()
	s.Disks.Fill(cache.object())
	for _, a := range []*actor{one, two} {
		a.want = with(a.want, "running", cty.False)
	}
	one.use(cache)
	one.create()
	two.create()
	two.uses = []*actor{cache}
	free, take := one.change(providers.Update, disks()), two.change(providers.Update, disks(cache))
	for _, c := range []providers.Change{free, take} {
		if v := c.Edits[0].Verdict; v.Applies != providers.Live || v.Reason == "" {
			s.t.Errorf("disks of what is off are judged %+v", v)
		}
	}
	same(s.t, "what who has it frees", []providers.Claim{cache.claim()}, freed(one.steps(free)))
	same(s.t, "what who gets it takes", []providers.Claim{cache.claim()}, taken(two.steps(take)))
	one.carryOut(free)
	one.uses = nil
	two.carryOut(take)
	one.holds()
	two.holds(cache)
	for _, a := range []*actor{one, two} {
		c := a.change(providers.Destroy)
		if a == two {
			same(s.t, "what the removal of a VM frees", []providers.Claim{cache.claim()}, freed(a.steps(c)))
		}
		a.carryOut(c)
	}
	cache.checkDisk(cache.object())
	if !s.Disks.Filled(cache.object()) {
		s.t.Error("what was on the disk is gone with the VMs")
	}
	cache.carryOut(cache.change(providers.Destroy))
	same(s.t, "what is left", before, s.Traces())
}

// inUse checks that a disk stays alone while somebody else's VM uses it.
func inUse(s *stage) {
	cache := s.disk("cache")
	cache.create()
	s.Disks.Fill(cache.object())
	s.Disks.Attach("neighbours", cache.object())
	inv := cache.see()
	if !slices.ContainsFunc(inv.Objects, func(o providers.Object) bool {
		return o.Owner == nil && o.Name == "neighbours" && slices.Contains(o.Holds, cache.claim())
	}) {
		s.t.Errorf("who uses the disk is not seen: %+v", inv.Objects)
	}
	before := s.Traces()
	if _, failure := cache.try(cache.change(providers.Destroy)); failure == nil || failure.Outcome != providers.Unsafe || len(failure.Next) == 0 {
		s.t.Errorf("destroying a disk that is in use: %+v", failure)
	}
	same(s.t, "what is there of a disk that is in use", before, s.Traces())
	if !s.Disks.Filled(cache.object()) {
		s.t.Error("what was on a disk that is in use is gone")
	}
}
