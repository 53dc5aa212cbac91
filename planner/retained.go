package planner

import (
	"fmt"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// retain keeps an object that is to be destroyed and that an object of others uses. Unlike a blocked change it keeps
// nothing else from being carried out: a later plan removes the object once its user is gone. It reports whether it
// applies: an object outside of an engine, and no shared network, blocks.
func (o *orderer) retain(t claimant, held holding) bool {
	c := &o.plan.Changes[t.change]
	_, planned := o.objects[held.object]
	ours := MarkingOf(held.object, o.plan.Project) == Ours
	lets := natures[c.Inside.Kind].isFound || ctyread.True(c.Policy, "shared")
	if !t.ends() || planned || ours || t.claim.Kind != providers.ClaimUse || c.Action != providers.Destroy || !lets {
		return false
	}
	return o.block(t.change, Block{Cause: CauseRetained, Problem: providers.Refuse(
		fmt.Sprintf("%s uses it", describe(o.world.System(c.System), held.object)),
		providers.Say("once that one is gone, the next apply or destroy removes it"))})
}

// retainAround keeps vmctl connected to an engine in which something is retained. It reports whether it applies.
func (o *orderer) retainAround(around, inside int) bool {
	c, child := &o.plan.Changes[around], &o.plan.Changes[inside]
	if !natures[c.Kind].isFound || c.Action != providers.Destroy || !child.isRetained() {
		return false
	}
	return o.block(around, Block{Cause: CauseRetained, Problem: providers.Refuse(
		fmt.Sprintf("%s is inside of it, and is retained", child.Address), nil)})
}

// isRetained reports whether the object of a change is to be destroyed and stays, because others use it.
func (c *Change) isRetained() bool { return c.Blocked != nil && c.Blocked.Kind() == Retained }

// Retained lists the addresses whose objects are to be destroyed and stay, because others use them.
func (p *Plan) Retained() []spec.Address {
	var all []spec.Address
	for i := range p.Changes {
		if p.Changes[i].isRetained() {
			all = append(all, p.Changes[i].Address)
		}
	}
	return slices.Clip(all)
}
