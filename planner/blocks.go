package planner

import (
	"fmt"
	"slices"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// settle blocks changes and decides what happens inside of VMs, until nothing changes any
// more: a blocked change frees, lowers and makes nothing, which may block others.
func (o *orderer) settle() {
	for again := true; again; {
		again = o.busyBlocks() || o.undecidedBlocks() || o.dirtyBlocks() || o.claimBlocks() || o.insideBlocks() || o.skipBlocks() || o.dependencyBlocks(o.isNow) || o.fates() || o.dependencyBlocks(o.isLate) || o.keepYields()
	}
}

// block blocks a change, unless it is blocked already.
func (o *orderer) block(i int, b Block) bool {
	c := &o.plan.Changes[i]
	if c.Blocked != nil {
		return false
	}
	c.Blocked = &b
	return true
}

// busyBlocks blocks what would take down a VM or a workspace in which somebody is at work.
func (o *orderer) busyBlocks() bool {
	again := false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		if len(c.Busy.Holders) > 0 && !c.Busy.Interrupt && c.Busy.Wait == 0 && slices.ContainsFunc(o.steps(i), TakesDown) {
			again = o.block(i, Block{Cause: CauseBusy, Problem: providers.Refuse(BusyReason(c.Busy.Holders), BusyNext(c))}) || again
		}
	}
	return again
}

// insideBlocks blocks the end of an object with something inside of it that is to be kept, and letting go of such an
// object: nobody would find again what is inside.
func (o *orderer) insideBlocks() bool {
	again := false
	for _, i := range o.inwards {
		child := &o.plan.Changes[i]
		for j := range o.around(i) {
			if !o.abandons(j) || !o.isKept(i) && !o.isLeftIn(i, j) {
				continue
			}
			if o.retainAround(j, i) {
				again = true
				continue
			}
			next := fmt.Sprintf("see what the plan says of %s", child.Address)
			if o.delta.Aside[child.Address] {
				next = takeIn(child.Address)
			}
			again = o.block(j, Block{
				Cause: CauseInside, by: child.Address,
				Problem: providers.Refuse(
					fmt.Sprintf("%s is inside of it, and is to be kept", child.Address),
					providers.Say(next)),
			}) || again
		}
	}
	return again
}

// abandons reports whether a change that is carried out removes its object or lets go of it.
func (o *orderer) abandons(i int) bool {
	return removes(o.steps(i)) || o.active(i) && o.plan.Changes[i].LetsGo()
}

func takeIn(a spec.Address) string {
	return fmt.Sprintf("take %s in: leave out --target and --exclude, or name it, too: --target=%s", a, shellword.Quote(a.String()))
}

// isKept reports whether an object is to outlive what it is inside of. It is not if it is removed
// before, if it goes with that and is made again in the new one, or if there is none.
func (o *orderer) isKept(i int) bool {
	c := &o.plan.Changes[i]
	switch {
	case o.isShutIn(i):
		return !o.delta.options.Destroy
	case c.Record == nil && c.Want == nil && c.Action == providers.Destroy: // an orphan
		return c.Blocked != nil || o.delta.Aside[c.Address]
	case c.Action == providers.Forget && c.lets && c.Object != nil:
		return c.Blocked != nil || o.delta.Aside[c.Address]
	case c.Record == nil, c.Action == providers.Forget, c.Object == nil && c.Blocked == nil:
		return o.delta.Aside[c.Address] && c.Record != nil && c.Action != providers.Forget
	case o.active(i) && c.To != nil && o.isAsleep(*c.To): // it waits or stays: fates decides, and it is not active any more
		return false
	case o.active(i):
		return !removes(o.made[i]) && (c.with == spec.Address{})
	default:
		return true
	}
}

// isAsleep reports whether nothing can be asked of a place before something comes up, if it does.
func (o *orderer) isAsleep(in Place) bool {
	sleep := o.world.System(in.System).sleep
	return sleep == starting || sleep == switching || sleep == resting
}

// isShutIn reports whether an object was not read because what it is inside of is off, and is wanted elsewhere.
func (o *orderer) isShutIn(i int) bool {
	c := &o.plan.Changes[i]
	sleep := o.world.System(c.System).sleep
	asleep := sleep == resting || sleep == starting || sleep == switching || sleep == inapplicable
	return c.Record != nil && c.Want != nil && asleep && c.Want.Inside != c.Inside
}

// isLeftIn reports whether an object stays in another one of which vmctl only lets go, and was not read because it is not
// applicable: nobody would find it again.
func (o *orderer) isLeftIn(i, j int) bool {
	c := &o.plan.Changes[i]
	return o.world.System(c.System).IsInapplicable() && c.Record != nil && c.Action != providers.Forget && natures[o.plan.Changes[j].Kind].isFound && o.endingWith(i) < 0
}

// isNow reports whether something is done about a change in this round, isLate whether it
// waits for a later one.
func (o *orderer) isNow(i int) bool { return !o.comesToNothing(i) }

func (o *orderer) isLate(i int) bool {
	_, late := o.late[i]
	return late
}

// dependencyBlocks blocks each change that depends on a blocked change, if are reports true for
// it. It follows the same dependencies as `--exclude`.
func (o *orderer) dependencyBlocks(are func(int) bool) bool {
	again := false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		if c.Blocked == nil || c.isRetained() {
			continue
		}
		for _, a := range sortedSet(reach(c.Address, o.delta.dependents)) {
			j, planned := o.index[a]
			if !planned || a == c.Address || o.delta.Aside[a] || !are(j) {
				continue
			}
			again = o.block(j, Block{
				Cause: CauseDependency, by: c.Address,
				Problem: providers.Refuse(
					fmt.Sprintf("it needs %s, whose own change is %s", c.Address, c.Blocked.Kind()),
					providers.Say(fmt.Sprintf("see what the plan says of %s", c.Address))),
			}) || again
		}
	}
	return again
}

// comesToNothing reports whether nothing would be done about a change.
func (o *orderer) comesToNothing(i int) bool {
	c := &o.plan.Changes[i]
	return c.Action == providers.NoOp && len(o.made[i]) == 0 && !o.begun[c.Address]
}

func removes(steps []providers.Step) bool {
	return slices.ContainsFunc(steps, func(s providers.Step) bool { return s.Phase == providers.PhaseRemove })
}

// lowers reports whether a step stops or removes its object.
func lowers(s providers.Step) bool {
	return s.Phase == providers.PhaseDown || s.Phase == providers.PhaseRecover || s.Phase == providers.PhaseRemove
}
