package providertest

import (
	"vmctl/providers"
	"vmctl/spec"
)

// move gives the actor another address, as if its record had been moved.
func (a *actor) move(label string) {
	a.was = append(a.was, a.address)
	a.address = spec.Address{Kind: spec.VM, Name: label}
}

// marked returns the change that writes the actor's address into the mark.
func (a *actor) marked() providers.Change {
	c := a.change(providers.Update)
	c.Generation++
	c.Mark = &providers.MarkEdit{Before: a.was[len(a.was)-1]}
	return c
}

func moved(s *stage) {
	dev := s.actor("dev")
	dev.create()
	for _, label := range []string{"web", "db"} {
		before := dev.object()
		dev.move(label)
		c := dev.marked()
		same(s.t, "the phases of a new mark", "change", phases(dev.steps(c)))
		done := dev.carryOut(c)
		after := dev.object()
		dev.checkMade(after)
		same(s.t, "its name, which stays", before.Name, after.Name)
		if r := done[0].result; r.Running == nil || !*r.Running {
			s.t.Errorf("after its mark was written it says running = %v", r.Running)
		}
		if after.Fingerprint == before.Fingerprint {
			s.t.Error("the fingerprint is the same with another mark")
		}
	}
	dev.carryOut(dev.change(providers.Stop))
	dev.carryOut(dev.change(providers.Destroy))
}

func movedAway(s *stage) {
	nothing := s.Traces()
	dev := s.actor("dev")
	dev.create()
	dev.move("web")
	stranger := s.actor("other")
	stranger.id, stranger.name = dev.id, dev.name
	if _, failure := stranger.try(stranger.change(providers.Destroy)); failure == nil || failure.Outcome != providers.Unsafe {
		s.t.Errorf("removed for an address that it never had: %+v", failure)
	}
	dev.carryOut(dev.change(providers.Stop))
	dev.carryOut(dev.change(providers.Destroy))
	if o := dev.find(); o != nil {
		s.t.Errorf("after its destruction there is %+v", o)
	}
	same(s.t, "what is left after a destruction", nothing, s.Traces())
}
