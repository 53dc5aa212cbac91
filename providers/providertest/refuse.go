package providertest

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

func foreign(s *stage) {
	dev := s.actor("dev")
	look := s.Foreign(dev.name)
	before := look()
	c := dev.change(providers.Create)
	steps := dev.steps(c)
	inv := s.observe(dev.known())
	i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool { return o.Name == dev.name })
	if i < 0 {
		s.t.Fatalf("another's VM of our name is not seen: %+v", inv)
	}
	o := inv.Objects[i]
	if o.Owner != nil || o.ID == dev.id || o.Fingerprint == "" {
		s.t.Errorf("another's VM is seen as %+v", o)
	}
	if len(steps[0].Takes) == 0 || !slices.Contains(o.Holds, steps[0].Takes[0]) {
		s.t.Errorf("it holds %v, and making ours takes %v", o.Holds, steps[0].Takes)
	}
	_, failure := dev.try(c)
	if failure == nil || failure.Outcome != providers.Unsafe && failure.Outcome != providers.Stale || len(failure.Next) == 0 {
		s.t.Errorf("making a VM of a name that is taken: %+v", failure)
	}
	// A plan that mistakes the VM for ours is refused as well.
	c = providers.Change{
		Address: dev.address, Kind: spec.VM, Action: providers.Destroy, Name: dev.name, ID: o.ID, Object: &o, Policy: s.Policy,
	}
	if _, failure := dev.try(c); failure == nil || failure.Outcome != providers.Unsafe {
		s.t.Errorf("destroying another's VM: %+v", failure)
	}
	same(s.t, "another's VM", before, look())
}

func blind(s *stage) {
	one, two := s.actor("one"), s.actor("two")
	one.create()
	two.create()
	stop, other := one.change(providers.Stop), two.object()
	s.Blind(one.object())
	same(s.t, "the fingerprint of the other", other.Fingerprint, two.object().Fingerprint)
	inv := s.observe(one.known(), two.known())
	unknown := slices.ContainsFunc(inv.Unknown, func(u providers.Unknown) bool {
		return (u.ID == one.id || u.Name == one.name) && u.Reason != ""
	})
	partly := slices.ContainsFunc(inv.Objects, func(o providers.Object) bool { return o.ID == one.id && o.Unreadable["running"] != "" })
	if unknown == partly {
		s.t.Errorf("a VM that cannot be read is unknown: %t, or partly unreadable: %t", unknown, partly)
	}
	before := s.Traces()
	if _, failure := one.try(stop); failure == nil {
		s.t.Error("a VM that cannot be read was stopped")
	}
	same(s.t, "what is there after a step on what cannot be read", before, s.Traces())
}
