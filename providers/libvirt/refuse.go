package libvirt

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// refusal returns the reason why the steps could only fail with the domain as it is now; nil:
// there is none.
func (r *recipe) refusal(steps []providers.Step) error {
	does := func(ops ...string) bool {
		return slices.ContainsFunc(steps, func(step providers.Step) bool { return slices.Contains(ops, step.Op) })
	}
	name := machine.Name(r.change)
	if does(opRedefine, opDetach, opDelete) {
		if err := onLayers(r.change.Object); err != nil {
			return err
		}
	}
	if does(opStop, opRecover, opRedefine) {
		if err := inJob(r.change.Object); err != nil {
			return err
		}
	}
	switch {
	case machine.Found(r.change.Object, providers.FindDirty) && does(opRedefine):
		return providers.Refuse(savedMemory, r.p.beforeRedefine(name))
	case r.change.Object != nil && isForeign(*r.change.Object) && r.edits(forwardAttr):
		return providers.Refuse("vmctl did not make it: its network is its own, and no port is forwarded into it",
			providers.Say(fmt.Sprintf("write port_forward of %s as its domain has it, or leave it out", r.change.Address)))
	case r.lacksIdentity() != "" && does(opRedefine):
		return providers.Refuse("the key "+r.lacksIdentity()+" is not on this machine", providers.Say("put it there, or run vmctl where it is"))
	case r.lacksKeys() && does(opRedefine):
		return providers.Refuse("what is written for its guest holds its keys, which are not on this machine", waysToKeys(r.change.Address))
	case r.broken() && !r.policy.Force && does(opStop, opRecover):
		return providers.Refuse("what runs of it can hear no request, and stop { force = false } forbids to force it",
			providers.Say(
				"end it by hand: virsh -c "+r.p.location.URI+" destroy "+r.change.Object.Name,
				fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", r.change.Address),
			))
	}
	return nil
}

// lacksIdentity returns the spec's key file that a change would have to read, if it is
// missing; "": none.
func (r *recipe) lacksIdentity() string {
	rekeys := r.change.Rekey != nil || r.edits(identityAttr)
	if file := r.p.keyFiles(string(r.change.ID), r.change.Name, r.want.SSH).identity; rekeys && r.want.SSH.Identity != "" && !exists(file) {
		return file
	}
	return ""
}

// lacksKeys reports whether a change would have to write keys that are not on this machine.
func (r *recipe) lacksKeys() bool {
	writes := r.edits("boot.initrd_sha256") || r.edits(othersAttr)
	return machine.Found(r.change.Object, providers.FindNoKey) && writes && r.change.Rekey == nil && !r.edits(identityAttr)
}

const savedMemory = "its managed-save image does not match the new settings"

// beforeRedefine returns commands for a domain with saved memory.
func (p *Provider) beforeRedefine(name string) []providers.Advice {
	return providers.Say(
		"go on from it, then apply: virsh -c "+p.location.URI+" start "+name,
		"or throw it away: virsh -c "+p.location.URI+" managedsave-remove "+name,
	)
}
