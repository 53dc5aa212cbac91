package providertest

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// copied checks that an object with another object's mark is left alone.
func copied(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	dev.create()
	original := dev.object()
	name := s.Copy(original)
	before := s.Traces()
	inv := s.observe(dev.known())
	i := slices.IndexFunc(inv.Objects, func(o providers.Object) bool { return o.Name == name })
	if i < 0 {
		s.t.Fatalf("a copy is not seen: %+v", inv)
	}
	o := inv.Objects[i]
	if o.ID == dev.id || o.Owner == nil || o.Owner.Of != dev.id {
		s.t.Errorf("a copy is seen as %+v, whose mark is %+v", o, o.Owner)
	}
	if !slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindCopy && len(f.Evidence) > 0 }) {
		s.t.Errorf("that it is a copy is not said: %+v", o.Findings)
	}
	same(s.t, "the original's fingerprint beside a copy", original.Fingerprint, dev.object().Fingerprint)
	dev.untouchable("a copy", o)
	s.Settings.Project.ID += "x"
	s.reopen()
	stranger := s.actor("dev")
	stranger.id = dev.id
	o = stranger.object()
	if o.Owner == nil || o.Owner.ID == s.Settings.Project.Lineage() {
		s.t.Errorf("another project's VM bears the mark %+v", o.Owner)
	}
	stranger.untouchable("another project's VM", o)
	same(s.t, "what bears another's mark", before, s.Traces())
}

// untouchable checks that the provider refuses a plan that mistakes o for the actor's own
// object.
func (a *actor) untouchable(what string, o providers.Object) {
	a.t.Helper()
	c := providers.Change{
		Address: a.address, Kind: spec.VM, Action: providers.Destroy, Name: o.Name, ID: o.ID, Object: &o, Policy: a.Policy,
	}
	if _, failure := a.try(c); failure == nil || failure.Outcome != providers.Unsafe {
		a.t.Errorf("destroying %s: %+v", what, failure)
	}
}

// renamed checks that a replacement removes nothing until it is clear that the new name is
// free.
func renamed(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	dev.create()
	name := s.Settings.Project.Name + ".taken"
	s.Foreign(name)
	before := s.Traces()
	c := dev.change(providers.ReplaceIt)
	c.ID, c.Name, c.Replaced, c.Generation = s.newID(), name, 1, 2
	if _, failure := dev.try(c); failure == nil || failure.Outcome != providers.Unsafe || len(failure.Next) == 0 {
		s.t.Errorf("a replacement whose name is taken: %+v", failure)
	}
	same(s.t, "what is there after a replacement whose name is taken", before, s.Traces())
}

// unreachable checks that a system without an answer is not mistaken for an empty one.
func unreachable(s *stage) {
	dev := s.actor("dev")
	dev.want = with(dev.want, "running", cty.False)
	create := dev.change(providers.Create)
	dev.create()
	destroy := dev.change(providers.Destroy)
	s.Cut(s.World)
	s.reopen()
	before := s.Traces()
	inv := s.observe(dev.known())
	if inv.Partial[spec.VM] == nil || len(inv.Objects) > 0 {
		s.t.Errorf("a system that does not answer shows %+v, and is partial because %v", inv.Objects, inv.Partial[spec.VM])
	}
	for _, c := range []providers.Change{create, destroy} {
		if _, failure := dev.try(c); failure == nil {
			s.t.Errorf("%s on a system that does not answer succeeds", c.Action)
		}
	}
	same(s.t, "what is there after that", before, s.Traces())
}
