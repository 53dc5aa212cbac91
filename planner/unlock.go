package planner

import (
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// unlock decides about a disk that the user wants unlocked: a lock whose holder is
// gone is released, whatever on_stale_lock says, and nothing else is done. One whose
// holder lives is left alone.
func (d *differ) unlock(c *Change, system *System, standing Standing) {
	c.Action = providers.NoOp
	switch standing {
	case Managed, Adoptee, Unwanted, Orphan:
	case Wanted, LetGo:
		c.Reason, c.Object = "it does not exist: there is nothing to unlock", nil
		return
	case Stranger, Clone, NotOurs:
		c.Reason, c.Object = "what has its name is not vmctl's: nothing is unlocked", nil
		return
	default:
		panic("unknown standing " + string(standing))
	}
	c.ID, c.Name = c.Object.ID, c.Object.Name
	if holders := holdersOf(c.Object, system); len(holders) > 0 {
		c.Blocked = &Block{
			Cause: CauseHeld,
			Problem: providers.Refuse(
				"it is not unlocked: "+strings.Join(holders, "; "),
				providers.SayVmctl("let its holder end first, then: ", "disk", "unlock", c.Address.String())),
		}
		return
	}
	if !hasStaleLock(c.Object) {
		c.Reason = "nobody holds it: there is nothing to unlock"
		return
	}
	c.Action, c.Reason = providers.Recover, "who held it is gone"
	if c.Record != nil { // nothing else of the block is taken over
		c.Policy = c.Record.Policy
	}
}

// scopeStaleLocks brings the disks of a VM that is restarted into scope whose locks somebody who is
// gone left behind: the VM may have ended by itself, and a start needs these locks released. A
// restart brings nothing else that its VM uses.
func (d *differ) scopeStaleLocks(uses map[spec.Address][]spec.Address) {
	for a, restarted := range d.options.Restart {
		for _, used := range uses[a] {
			if !restarted || !natures[used.Kind].isDisk || slices.Contains(d.options.Scope.Excludes, used) {
				continue
			}
			if o := d.observations.At(used, d.name(used)).Object; o != nil && hasStaleLock(o) {
				d.scope[used] = true
			}
		}
	}
}

func hasStaleLock(o *providers.Object) bool {
	return slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindStaleLock })
}

// holdersOf returns the present holders of a disk in words: those that its provider found, and
// VMs that run with it.
func holdersOf(disk *providers.Object, system *System) []string {
	var all []string
	for _, f := range disk.Findings {
		if f.Kind == providers.FindHeldLock {
			all = append(all, f.Evidence...)
		}
	}
	for i := range system.Inventory.Objects {
		if o := &system.Inventory.Objects[i]; RunsWith(o, disk) {
			all = append(all, fmt.Sprintf("%s runs with it", describe(system, o)))
		}
	}
	return all
}

// RunsWith reports whether an object has a disk and runs, at least in part.
func RunsWith(o, disk *providers.Object) bool {
	return UsesDisk(o, disk) && (o.Running != nil && *o.Running || !stopped(o))
}

// UsesDisk reports whether an object, running or not, has a disk.
func UsesDisk(o, disk *providers.Object) bool {
	for _, c := range o.Holds {
		if c.Kind == providers.ClaimDisk && c.Key == string(disk.ID) {
			return true
		}
	}
	return false
}
