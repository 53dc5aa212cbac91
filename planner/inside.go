package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// sleep says why what is inside of a VM was not read; "": it was, or nobody could.
type sleep string

const (
	starting sleep = "starting" // the VM will be started: what is inside is read then
	resting  sleep = "resting"  // the VM is off and stays so
	nowhere  sleep = "nowhere"  // there is no VM, and none will be made: nothing is inside of it
)

// addInside registers what is inside of a VM.
func (w *World) addInside(types map[string]providers.Type, vm spec.Address, ref spec.ProviderRef, settings cty.Value) (string, error) {
	if types[ref.Type].Inside == nil {
		return "", fmt.Errorf("nothing inside of a VM of %s can be managed: this build of vmctl does not know how", ref)
	}
	outside, err := SystemKey(types[ref.Type], ref, settings)
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

// unread says why nothing of a system is known; "": something is.
func (s *System) unread() string {
	if s.sleep == starting || s.sleep == resting {
		return fmt.Sprintf("%s is off: what is inside of it cannot be read", s.Inside)
	}
	return s.unseen
}

// awake returns those of the insides that can be read now, and notes of the others
// why they cannot.
func (w *World) awake(insides []*System, c *spec.Config, s *state.Snapshot, o Options) []*System {
	if len(insides) == 0 {
		return nil
	}
	var all []*System
	sights := w.Sights(s, o.Project)
	for _, system := range insides {
		vm := system.Inside
		if w.placed[vm] == "" { // neither in the spec nor recorded
			system.sleep = nowhere
			continue
		}
		sight := sights.At(vm, nameFor(c, s, o.Project, vm))
		switch {
		case sight.Unknown != "":
			system.unseen = fmt.Sprintf("%s could not be read: %s", vm, sight.Unknown)
		case !isOurs(sight):
			system.sleep = sleeps(c, o, vm, nowhere)
		case runStateUnknown(sight.Object) != "":
			system.unseen = fmt.Sprintf("the run state of %s could not be read: %s", vm, runStateUnknown(sight.Object))
		case sight.Object.Running == nil || !*sight.Object.Running:
			system.sleep = sleeps(c, o, vm, resting)
		default:
			system.via = sight.Object
			all = append(all, system)
		}
	}
	return all
}

// isOurs reports whether a sight is of an object that is kept as the spec says, or
// would be.
func isOurs(s Sight) bool {
	switch Stand(s.Marking, s.Recorded, true) {
	case Managed, Adoptee:
		return true
	case Unwanted, Orphan, Stranger, Clone, LetGo, Wanted, NotOurs:
		return false
	default:
		panic("unknown standing of " + string(s.Marking))
	}
}

// sleeps is starting where a plan brings a VM up, else as it is.
func sleeps(c *spec.Config, o Options, vm spec.Address, asItIs sleep) sleep {
	r, inSpec := c.Resource(vm)
	if !inSpec || o.Destroy {
		return asItIs
	}
	on, asked := o.Running[vm]
	if !asked {
		on = attributeIsTrue(r.Want, "running")
	}
	if on {
		return starting
	}
	return asItIs
}

// nameFor is the name that the object of an address has by its record, or would
// get.
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

// asleep decides about what is inside of a VM that was not read. It reports
// whether it did.
func (d *differ) asleep(c *Change, system *System, wanted bool) bool {
	vm := system.Inside
	going := !wanted && c.Record != nil
	switch system.sleep {
	case "":
		return false
	case starting:
		d.put(c, vm)
	case nowhere:
		if going {
			c.Action, c.Reason = providers.Forget, fmt.Sprintf("%s does not exist, and nothing is inside of it", vm)
		}
	case resting:
		owner, decided := d.decided[vm]
		switch {
		case going && decided && owner.Action == providers.Destroy && owner.Blocked == nil && d.scope[vm]:
			c.Action, c.Reason = providers.Forget, fmt.Sprintf("it goes with %s", vm)
		case going && d.options.Destroy:
			c.Blocked = &Block{
				Kind:   Blocked,
				Reason: fmt.Sprintf("%s is off: what is inside of it cannot be removed", vm),
				Next:   []string{"start it first, or destroy it with all that is inside of it"},
			}
		default:
			c.Reason = fmt.Sprintf("%s is off and stays so: what is inside of it is not read", vm)
		}
	default:
		panic("unknown sleep " + string(system.sleep))
	}
	return true
}

// put defers an address until a VM is ready.
func (d *differ) put(c *Change, until spec.Address) {
	d.later[c.Address] = until
	c.Action = providers.NoOp
}

// around decides about what is inside of a VM that this plan takes down: it is let
// go of before, and read again after. It reports whether it did.
func (d *differ) around(c *Change, system *System, sight Sight) bool {
	owner, decided := d.decided[system.Inside]
	if (system.Inside == spec.Address{}) || !decided || owner.Blocked != nil || !d.scope[system.Inside] {
		return false
	}
	switch owner.Action {
	case providers.RestartIt, providers.ReplaceIt, providers.Recover, providers.Start:
		d.put(c, system.Inside)
	case providers.Stop:
		c.Action, c.Reason = providers.NoOp, fmt.Sprintf("%s will be off", system.Inside)
	case providers.Create, providers.Update, providers.Import, providers.Release, providers.Destroy, providers.Adopt,
		providers.Forget, providers.NoOp:
		return false
	default:
		panic("unknown action " + string(owner.Action))
	}
	if isOurs(sight) && owner.Action != providers.Start {
		c.Action, c.Reason, c.ID, c.Change.Want = providers.Release, fmt.Sprintf("%s goes down", system.Inside), sight.Object.ID, cty.NilVal
	}
	return true
}

// mustLetGo reports whether something that is out of scope lets go of a VM that is in
// scope and goes down: nothing else is done with it.
func (d *differ) mustLetGo(a spec.Address) bool {
	c := d.decided[a]
	return c.Action == providers.Release && !d.scope[a] && d.scope[c.Inside] && !slices.Contains(d.options.Scope.Excludes, a)
}

// waits defers what refers to something that was deferred.
func (d *differ) waits(c *Change) bool {
	for _, a := range c.Needs {
		if until, ok := d.later[a]; ok {
			d.put(c, until)
			return true
		}
	}
	return false
}
