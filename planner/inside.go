package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// sleep is the reason why the inside of a VM was not read; "": it was read, or could not be read.
type sleep string

const (
	starting sleep = "starting" // the VM will be started: what is inside is read then
	resting  sleep = "resting"  // the VM is off and stays so
	nowhere  sleep = "nowhere"  // there is no VM, and none will be made: nothing is inside of it
)

// addInside registers the inside of a VM as a system, and returns its key.
func (w *World) addInside(keys *systemKeys, vm spec.Address, ref spec.ProviderRef, settings cty.Value) (string, error) {
	if keys.types[ref.Type].Inside == nil {
		return "", fmt.Errorf("nothing inside of a VM of %s can be managed: this build of vmctl does not know how", ref)
	}
	outside, err := keys.of(ref, settings)
	if err != nil {
		return "", err
	}
	key := outside + " inside " + vm.String()
	if _, ok := w.systems[key]; !ok {
		w.systems[key] = &System{Key: key, Ref: ref, Settings: settings, Inside: vm}
	}
	return key, nil
}

// String names a system for people.
func (s *System) String() string {
	if (s.Inside == spec.Address{}) {
		return s.Ref.String()
	}
	return "what is inside of " + s.Inside.String()
}

// unread returns why nothing of a system is known; nil: something is.
func (s *System) unread() *providers.Problem {
	if s.sleep == starting || s.sleep == resting {
		return providers.Refuse(fmt.Sprintf("%s is off: what is inside of it cannot be read", s.Inside), nil)
	}
	return s.unseen
}

// awake returns the insides that can be read now. For each other one it notes why it cannot be
// read.
func (w *World) awake(insides []*System, c *spec.Config, s *state.Snapshot, o Options) []*System {
	if len(insides) == 0 {
		return nil
	}
	var all []*System
	observations := w.Observations(s, o.Project)
	for _, system := range insides {
		vm := system.Inside
		if w.placed[vm] == "" { // neither in the spec nor recorded
			system.sleep = nowhere
			if where := w.orphan(vm, o.Project); where != "" {
				system.sleep, system.unseen = "", providers.Refuse(fmt.Sprintf("%s has no block and no record, and %s is there", vm, where), nil)
			}
			continue
		}
		seen := observations.At(vm, nameFor(c, s, o.Project, vm))
		switch {
		case seen.Unknown != nil:
			system.unseen = seen.Unknown.Within("%s could not be read", vm)
		case !isOurs(seen):
			system.sleep = sleeps(c, o, vm, nowhere)
		case runStateUnknown(seen.Object) != "":
			system.unseen = providers.Refuse(fmt.Sprintf("the run state of %s could not be read: %s", vm, runStateUnknown(seen.Object)), nil)
		case seen.Object.Running == nil || !*seen.Object.Running:
			system.sleep = sleeps(c, o, vm, resting)
		default:
			system.via = seen.Object
			all = append(all, system)
		}
	}
	return all
}

// orphan describes an object that bears the mark of an address, "" where none does.
func (w *World) orphan(a spec.Address, p providers.Project) string {
	for _, system := range w.Systems() {
		for i := range system.Inventory.Objects {
			if o := &system.Inventory.Objects[i]; MarkingOf(o, p) == Ours && w.addressOf(o) == a {
				return describe(system, o)
			}
		}
	}
	return ""
}

// isOurs reports whether the object of a seen is managed, or would be if the spec had a block
// for it.
func isOurs(s Observation) bool {
	switch Stand(s.Marking, s.Recorded, true) {
	case Managed, Adoptee:
		return true
	case Unwanted, Orphan, Stranger, Clone, LetGo, Wanted, NotOurs:
		return false
	default:
		panic("unknown standing of " + string(s.Marking))
	}
}

// sleeps returns starting if the plan brings a VM up, else asItIs.
func sleeps(c *spec.Config, o Options, vm spec.Address, asItIs sleep) sleep {
	r, inSpec := c.Resource(vm)
	if !inSpec || o.Destroy {
		return asItIs
	}
	on, asked := o.Running[vm]
	if !asked {
		on = ctyread.True(r.Want, "running")
	}
	if on {
		return starting
	}
	return asItIs
}

// nameFor returns the name that the object of an address has by its record, or else would get.
func nameFor(c *spec.Config, s *state.Snapshot, p providers.Project, a spec.Address) string {
	if r, ok := s.Records[a]; ok {
		return r.Name
	}
	if r, ok := c.Resource(a); ok {
		if name := nameOf(r.Want); name != "" {
			return name
		}
	}
	return ObjectName(p, a)
}

// Deferred is an address that cannot be read before this plan was carried out.
type Deferred struct{ Address, Until spec.Address } // Until: a VM that has to be ready

// asleep decides about a change inside of a VM that was not read, as far as it can before the
// change of the VM is known. It reports whether the inside was not read.
func (d *differ) asleep(c *Change, system *System, wanted bool) bool {
	if system.sleep == nowhere && !wanted && c.Record != nil {
		c.Action, c.Reason = providers.Forget, fmt.Sprintf("%s does not exist, and nothing is inside of it", system.Inside)
	}
	if system.sleep != "" && wanted && c.Want.Inside != c.Inside {
		c.Action = providers.Update
		c.Blocked = movesNowhere(c)
	}
	return system.sleep != ""
}

// movesNowhere returns the block that refuses to move an object to another system.
func movesNowhere(c *Change) *Block {
	return &Block{
		Cause: CauseRefused, Attr: "provider",
		Problem: providers.Refuse(
			"provider: "+staysPut,
			slices.Concat(providers.Vmctl("destroy", "--target="+c.Address.String()), providers.SayVmctl("then: ", "apply"))),
	}
}

const staysPut = "an object does not move to another system: destroy it first, then apply"
