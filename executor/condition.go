package executor

import (
	"slices"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// conditionalSteps decides whether the steps of conditional changes are carried out
// (planner.Change.Conditional): they are if a value changed.
type conditionalSteps struct {
	change   map[int]int   // the change that decides about each step that may be left out
	settled  map[int]bool  // whether a change takes nothing down, once that is known
	mistakes map[int]error // the error of evaluating the wanted values of a change; nil: none
}

// decidingChange returns the change that decides about a step, -1 for a step that is carried out in
// any case.
func (c *conditionalSteps) decidingChange(step int) int {
	if change, ok := c.change[step]; ok {
		return change
	}
	return -1
}

func (x *execution) conditionals() conditionalSteps {
	c := conditionalSteps{change: map[int]int{}, settled: map[int]bool{}, mistakes: map[int]error{}}
	conditional := map[spec.Address]int{}
	for i := range x.Plan.Changes {
		if x.Plan.Changes[i].Conditional {
			conditional[x.Plan.Changes[i].Address] = i
		}
	}
	if len(conditional) == 0 {
		return c
	}
	for i, s := range x.Plan.Steps {
		own := &x.Plan.Changes[s.Change]
		decides, ok := conditional[own.Address]
		if !ok && (s.Phase == providers.PhaseRelease || s.Phase == providers.PhaseResume) {
			for _, a := range own.Around {
				if decides, ok = conditional[a]; ok {
					break
				}
			}
		}
		if ok && onlyForDowntime(s, &x.Plan.Changes[decides]) {
			c.change[i] = decides
		}
	}
	return c
}

// onlyForDowntime reports whether a step is not needed if a VM stays up.
func onlyForDowntime(s planner.Step, c *planner.Change) bool {
	switch s.Phase {
	case providers.PhaseRelease, providers.PhaseDown, providers.PhaseUp, providers.PhaseResume:
		return true
	case providers.PhaseReady:
		if s.Provision != "" {
			return s.AtStart
		}
		return !c.Unready
	case providers.PhasePrepare, providers.PhaseRecover, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve, providers.PhaseMake,
		providers.PhaseChange, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(s.Phase))
}

// skipUnneeded ends every step that could begin now and is not needed, since the value that it
// waited for did not change.
func (x *execution) skipUnneeded() {
	var undecided []int // whose change cannot go on now
	for len(x.undecided) > 0 {
		steps := x.undecided
		x.undecided = nil
		slices.Sort(steps)
		for _, i := range steps {
			change := x.conditional.change[i]
			switch {
			case x.states[i] != waiting: // it has begun
			case !x.mayRun(change):
				undecided = append(undecided, i)
			case x.isSettled(change):
				x.skip(i, change)
			}
		}
	}
	x.undecided = undecided
}

// skip ends a step that a change does not need.
func (x *execution) skip(i, change int) {
	step := x.Plan.Steps[i]
	x.pass(i)
	evidence := []string{"the referenced value did not change: " + x.Plan.Changes[change].Address.String() + " is not restarted"}
	x.ends = append(x.ends, StepResult{Step: step, How: providers.NotNeeded})
	x.later(Event{Kind: StepDone, Step: step, How: providers.NotNeeded, Evidence: evidence})
}

// isSettled reports whether a change takes nothing down, now that the resources that it refers to
// are up. If its wanted values cannot be evaluated, the first of its steps fails, and nothing
// goes down.
func (x *execution) isSettled(change int) bool {
	settled, known := x.conditional.settled[change]
	if known {
		return settled
	}
	c := &x.Plan.Changes[change]
	resource, err := x.resolved(c)
	settled = err == nil && c.Settled(resource.Want)
	x.conditional.settled[change], x.conditional.mistakes[change] = settled, err
	return settled
}
