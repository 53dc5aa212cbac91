package cli

import (
	"slices"

	"vmctl/planner"
	"vmctl/state"
)

// scopedMoves are the moves of records that a plan may write down: those whose
// address is in its scope, and none where nobody was asked, since there is no step.
// What they concern has gone then: its record follows with the next step.
func scopedMoves(plan *planner.Plan, moves []state.Entry) []state.Entry {
	var scoped []state.Entry
	for _, e := range moves {
		in := slices.ContainsFunc(plan.Changes, func(c planner.Change) bool { return c.Address == e.Address })
		if !in || len(plan.Steps) == 0 {
			continue
		}
		e.Step = len(scoped)
		scoped = append(scoped, e)
	}
	return scoped
}
