package planner

import (
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// ask asks the provider for the steps of a change. It also asks for a blocked change, since that
// still wants its claims.
func (o *orderer) ask(i int) {
	c := &o.plan.Changes[i]
	o.made[i] = nil
	// A forgotten object may have left remains or bear a mark, unless it is somebody else's.
	if o.delta.Aside[c.Address] || c.Action == providers.NoOp || c.Action == providers.Adopt || c.Action == providers.Forget && c.ID == "" || c.Blocked != nil && !hasSteps(c) {
		return
	}
	made, err := o.asked(c)
	var refusal *providers.Problem
	switch {
	case errors.As(err, &refusal):
		o.block(i, Block{Cause: CauseProvider, Problem: refusal})
	case err != nil:
		o.block(i, Block{Cause: CauseProvider, Problem: providers.Refuse(fmt.Sprintf("plan the steps of %s: %v", c.Address, err), nil)})
	default:
		o.made[i] = made
	}
}

// asked asks the providers for the steps of a change. An object that moves is removed here and made
// there, once that place can be reached. One that ends with the object around it needs no removal of its
// own, but its work is saved if its provider does that before a removal.
func (o *orderer) asked(c *Change) ([]providers.Step, error) {
	c.Provisions = c.provisions()
	if c.To == nil && (c.with == spec.Address{}) {
		return o.world.System(c.System).steps(c.Change)
	}
	if o.world.System(c.Aim().System).Provider == nil {
		return nil, nil
	}
	var steps []providers.Step
	if (c.with == spec.Address{} || c.observed) {
		remove := c.Change
		remove.Action, remove.ID, remove.Want = providers.Destroy, c.Object.ID, cty.NilVal
		remove.Succeeds, remove.Ends = true, c.with != spec.Address{}
		var err error
		if steps, err = o.world.System(c.System).steps(remove); err != nil {
			return nil, err
		}
		if (c.with != spec.Address{}) {
			steps = untilKept(steps)
		}
	}
	removed := len(steps)
	create := c.Change
	create.Action, create.Object, create.Prior, create.Edits, create.Mark = providers.Create, nil, cty.NilVal, nil, nil
	create.Succeeds = true
	made, err := o.world.System(c.Aim().System).steps(create)
	for _, s := range made {
		s.After = shifted(s.After, removed)
		if removed > 0 && len(s.After) == 0 {
			s.After = []int{removed - 1}
		}
		steps = append(steps, s)
	}
	return steps, err
}

// untilKept returns the steps up to the one that saves the work in an object, or sees that there is none; none: no step does.
func untilKept(steps []providers.Step) []providers.Step {
	for i := range steps {
		if steps[i].Saves || steps[i].Checks {
			return steps[:i+1]
		}
	}
	return nil
}

// hasSteps reports whether a blocked change would have steps if it were not blocked.
func hasSteps(c *Change) bool {
	return c.Blocked.Kind() == Blocked && (c.Object != nil || c.Action == providers.Create)
}
