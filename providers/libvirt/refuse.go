package libvirt

import (
	"fmt"
	"slices"

	"vmctl/providers"
)

// refusal says why the steps could only fail as the domain is now; nil: they can
// be done.
func (s *sequence) refusal() error {
	does := func(ops ...string) bool {
		return slices.ContainsFunc(s.steps, func(step providers.Step) bool { return slices.Contains(ops, step.Op) })
	}
	name := s.name()
	switch {
	case s.found(providers.FindDirty) && does(opRedefine):
		return &providers.Refusal{Reason: savedMemory, Next: s.p.beforeRedefine(name)}
	case s.change.Object != nil && isForeign(*s.change.Object) && slices.ContainsFunc(s.change.Edits, func(e providers.Edit) bool { return e.Path == forwardAttr }):
		return &providers.Refusal{
			Reason: "vmctl did not make it: its network is its own, and no port is forwarded into it",
			Next:   []string{fmt.Sprintf("write port_forward of %s as its domain has it, or leave it out", s.change.Address)},
		}
	case s.broken() && !s.rules.Force && does(opStop, opRecover):
		return &providers.Refusal{
			Reason: "what runs of it can hear no request, and stop { force = false } forbids to force it",
			Next: []string{
				"end it by hand: virsh -c " + s.p.place.URI + " destroy " + s.change.Object.Name,
				fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", s.change.Address),
			},
		}
	}
	return nil
}

const savedMemory = "its memory is saved, and would not fit what it is changed to"

// beforeRedefine is what to type about saved memory.
func (p *Provider) beforeRedefine(name string) []string {
	return []string{
		"go on from it, then apply: virsh -c " + p.place.URI + " start " + name,
		"or throw it away: virsh -c " + p.place.URI + " managedsave-remove " + name,
	}
}
