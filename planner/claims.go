package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// handovers lists, for each group of claims, the steps that take them, the steps that free them
// and the objects that hold them now.
type handovers struct {
	takers, freers map[claimGroup][]claimant
	holders        map[claimGroup][]holding
}

// claimant is a change with a claim that a step of it takes or frees.
type claimant struct {
	claim  providers.Claim
	change int
	step   providers.Step
}

// ends reports whether nobody has the claim afterwards.
func (c claimant) ends() bool { return c.step.Phase == providers.PhaseRemove }

// holding is a claim that an object holds, or that it holds until it goes down.
type holding struct {
	claim  providers.Claim
	object *providers.Object
	up     bool
	system *System // that the object is in
}

// holdings lists the claims of an object of a system.
func holdings(s *System, o *providers.Object) []holding {
	var all []holding
	for _, c := range o.Holds {
		all = append(all, holding{c, o, false, s})
	}
	for _, c := range o.HoldsUp {
		all = append(all, holding{c, o, true, s})
	}
	return all
}

// concerns reports whether a claim of an object is in the way of a change that takes one. A
// start takes the ports that its object holds anyway: nobody but who is up has them.
func (h holding) concerns(t claimant, c *Change) bool {
	return h.claim.Overlaps(t.claim) && (h.up || c.Object == nil || !slices.Contains(c.Object.Holds, t.claim))
}

// claimGroup identifies the claims of one system, or of this host, that can overlap.
type claimGroup struct {
	system string // "": this host, for claims of all systems
	claim  providers.Claim
}

// groupOf returns the group of a claim that is made in a system.
func groupOf(system string, c providers.Claim) claimGroup {
	if c.OnThisHost() {
		system = ""
	}
	return claimGroup{system, c.Group()}
}

func compareGroups(a, b claimGroup) int {
	return cmp.Or(cmp.Compare(a.system, b.system), cmp.Compare(a.claim.Kind, b.claim.Kind), cmp.Compare(a.claim.Key, b.claim.Key))
}

func (h *handovers) groups() []claimGroup {
	return slices.SortedFunc(maps.Keys(h.takers), compareGroups)
}

// handovers collects the claims that steps take and free. Freers are only the steps that are
// carried out. Takers include the steps of blocked changes: two changes that want one claim are
// in each other's way, whatever else blocks either.
func (o *orderer) handovers() handovers {
	h := handovers{takers: map[claimGroup][]claimant{}, freers: map[claimGroup][]claimant{}, holders: map[claimGroup][]holding{}}
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		for _, s := range o.made[i] {
			for _, claim := range s.Takes {
				group := groupOf(c.systemOf(s), claim)
				h.takers[group] = append(h.takers[group], claimant{claim, i, s})
			}
		}
		for _, s := range o.steps(i) {
			for _, claim := range s.Frees {
				group := groupOf(c.systemOf(s), claim)
				h.freers[group] = append(h.freers[group], claimant{claim, i, s})
			}
		}
	}
	for _, system := range o.world.Systems() {
		for i := range system.Inventory.Objects {
			object := &system.Inventory.Objects[i]
			for _, held := range holdings(system, object) {
				group := groupOf(system.Key, held.claim)
				h.holders[group] = append(h.holders[group], held)
			}
		}
	}
	return h
}

// claimBlocks blocks a change that takes a claim which its holder does not free, and two changes
// that take one claim. It asks a holder that frees the claim to free it in a sinking step.
func (o *orderer) claimBlocks() bool {
	h, again := o.handovers(), false
	for _, group := range h.groups() {
		for _, t := range h.takers[group] {
			if o.contested(h, group, t) {
				again = true
			}
			if !o.active(t.change) {
				continue
			}
			for _, held := range h.holders[group] {
				again = o.handOver(h, group, t, held) || again
			}
		}
	}
	return again
}

// contested blocks two changes that take overlapping claims. It reports whether it blocked
// anything.
func (o *orderer) contested(h handovers, group claimGroup, t claimant) bool {
	again := false
	for _, other := range h.takers[group] {
		if other.change <= t.change || other.ends() || t.ends() || !other.claim.Overlaps(t.claim) {
			continue
		}
		one, two := &o.plan.Changes[t.change], &o.plan.Changes[other.change]
		why := fmt.Sprintf("%s and %s both want %s", one.Address, two.Address, o.called(t.claim, one))
		if other.claim != t.claim {
			why = fmt.Sprintf("%s wants %s and %s wants %s, and only one can have both", one.Address, t.claim, two.Address, other.claim)
		}
		for _, i := range []int{t.change, other.change} {
			again = o.block(i, Block{Cause: CauseTwoTakers, Problem: providers.Refuse(why, providers.Say("change one of them"))}) || again
		}
	}
	return again
}

// handOver makes the holder of a claim free it before a change takes it, or blocks that change.
// It reports whether it changed anything.
func (o *orderer) handOver(h handovers, group claimGroup, t claimant, held holding) bool {
	c := &o.plan.Changes[t.change]
	own := c.Object != nil && held.object.ID == c.Object.ID && held.object.Kind == c.Object.Kind
	made := held.object.ID == c.ID && held.object.Kind == c.Kind
	if own || made || c.Blocked != nil || !held.concerns(t, c) {
		return false
	}
	i, planned := o.objects[held.object]
	if !held.claim.OnThisHost() && o.endsWithParent(group.system) {
		return !planned && t.ends() && o.leave(t.change)
	}
	if planned && o.sinkFrees(i, held.claim) || h.unlocks(group, held.claim) {
		if slices.Contains(c.Awaits, t.claim) {
			return false
		}
		c.Awaits = append(slices.Clip(c.Awaits), t.claim)
		o.ask(t.change)
		return true
	}
	if planned && o.active(i) && !slices.Contains(o.plan.Changes[i].Yields, held.claim) && !o.keeps(i, held) {
		yields := &o.plan.Changes[i].Yields
		*yields = append(slices.Clip(*yields), held.claim)
		o.ask(i)
		return true
	}
	if planned {
		if _, late := o.late[i]; late { // it is freed in a later round
			return false
		}
	}
	return o.retain(t, held) || o.block(t.change, o.heldBlock(t, held))
}

// leave lets an object of an engine that somebody else uses, and that nobody can remove before, go with the machine around it. It
// reports whether that is new.
func (o *orderer) leave(i int) bool {
	if o.left[i] || !natures[o.plan.Changes[i].Inside.Kind].isFound {
		return false
	}
	o.left[i] = true
	return true
}

// goesAlong reports whether an object is not removed by itself, because it goes with the machine around its engine.
func (o *orderer) goesAlong(i int) bool {
	return o.left[i] && o.endsWithParent(o.plan.Changes[i].System)
}

// endsWithParent reports whether what is inside of a system ends with the object around it: that
// frees all claims in there. An engine that is let go of stays as it is, with all that is inside of it.
func (o *orderer) endsWithParent(system string) bool {
	parent, planned := o.index[o.world.System(system).Inside]
	around := append([]int{parent}, slices.Collect(o.around(parent))...)
	return planned && slices.ContainsFunc(around, func(i int) bool {
		return !natures[o.plan.Changes[i].Kind].isFound && removes(o.steps(i))
	})
}

// keeps reports whether the steps of a change leave its object a claim.
func (o *orderer) keeps(i int, held holding) bool {
	return !slices.ContainsFunc(o.steps(i), func(s providers.Step) bool {
		return slices.Contains(s.Frees, held.claim) || held.up && lowers(s)
	})
}

// sinkFrees reports whether a sinking step of a change frees a claim of its object.
func (o *orderer) sinkFrees(i int, claim providers.Claim) bool {
	return slices.ContainsFunc(o.steps(i), func(s providers.Step) bool { return s.Phase.Sinks() && slices.Contains(s.Frees, claim) })
}

// unlocks reports whether a step releases a claim that somebody else left behind, as a
// stale lock.
func (h *handovers) unlocks(group claimGroup, claim providers.Claim) bool {
	return slices.ContainsFunc(h.freers[group], func(f claimant) bool { return f.claim == claim && f.step.Phase == providers.PhaseRelease })
}

// keepYields lets a change keep a claim if every change that takes it was blocked. It reports
// whether it changed anything.
func (o *orderer) keepYields() bool {
	h, again := o.handovers(), false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		if len(c.Yields) == 0 {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(c.Yields), func(claim providers.Claim) bool {
			return !slices.ContainsFunc(h.takers[groupOf(c.System, claim)], func(t claimant) bool {
				return t.change != i && o.plan.Changes[t.change].Blocked == nil && t.claim.Overlaps(claim)
			})
		})
		if len(kept) < len(c.Yields) {
			c.Yields, again = kept, true
			o.ask(i)
		}
	}
	return again
}

// heldBlock returns the block of a change whose claim another object holds.
func (o *orderer) heldBlock(t claimant, held holding) Block {
	c := &o.plan.Changes[t.change]
	holder := describe(held.system, held.object)
	var by spec.Address
	cause, reason, next := CauseForeign, "", providers.Say("choose another in the block of "+c.Address.String()+", or free it first")
	ours := MarkingOf(held.object, o.plan.Project) == Ours
	switch i, planned := o.objects[held.object]; {
	case planned && o.delta.Aside[o.plan.Changes[i].Address]:
		cause, holder = CauseExcluded, o.plan.Changes[i].Address.String()
		next = providers.Say(takeIn(o.plan.Changes[i].Address))
	case planned && o.plan.Changes[i].Blocked != nil:
		cause, by = CauseHeld, o.plan.Changes[i].Address
		holder = by.String()
		next = providers.Say("see what the plan says of " + holder)
	case planned:
		cause, holder = CauseKept, o.plan.Changes[i].Address.String()
	case ours:
		cause = CauseOrphan
	}
	disk := t.claim.Kind == providers.ClaimDisk || t.claim.Kind == providers.ClaimUse
	switch {
	case t.ends() && cause == CauseForeign && !disk:
		reason, next = fmt.Sprintf("%s is held by %s", t.claim, holder), providers.Say("let its holder end first")
	case t.ends() && cause == CauseForeign:
		reason, next = holder+" uses it", providers.Say("take it off that one first, with vmctl or with the system's own tool")
	case t.ends():
		reason = holder + " uses it, and this plan does not change that"
	case cause == CauseForeign:
		reason = fmt.Sprintf("%s is held by %s", o.called(t.claim, c), holder)
		if natures[c.Kind].isNamed && held.object.Owner == nil {
			next = append(next, providers.SayVmctl("import: ", "import", c.Address.String(), string(held.object.ID))...)
		}
	default:
		reason = fmt.Sprintf("%s is held by %s, and this plan does not change that", o.called(t.claim, c), holder)
	}
	if held.claim != t.claim {
		reason += " as " + held.claim.Key
	}
	return Block{Cause: cause, by: by, Problem: providers.Refuse(reason, next)}
}

// called returns a claim as text for people: the address for a disk that the change needs.
func (o *orderer) called(c providers.Claim, change *Change) string {
	for _, a := range change.Needs {
		if c.Kind == providers.ClaimDisk && change.Uses[a].ID == providers.ID(c.Key) {
			return a.String()
		}
	}
	return c.String()
}
