package executor

import (
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// conditionalSteps decides whether the steps of conditional changes are carried out
// (planner.Change.Conditional): they are if a value changed.
type conditionalSteps struct {
	steps    []int         // the steps that may be left out
	change   map[int]int   // the change that decides about each of these steps
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
		if !ok && s.Phase == providers.PhaseRelease {
			decides, ok = conditional[own.Inside]
		}
		if ok && onlyForDowntime(s, &x.Plan.Changes[decides]) {
			c.steps, c.change[i] = append(c.steps, i), decides
		}
	}
	return c
}

// onlyForDowntime reports whether a step is not needed if a VM stays up.
func onlyForDowntime(s planner.Step, c *planner.Change) bool {
	switch s.Phase {
	case providers.PhaseRelease, providers.PhaseDown, providers.PhaseUp:
		return true
	case providers.PhaseReady:
		return !c.Unready
	case providers.PhaseRecover, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve, providers.PhaseMake,
		providers.PhaseChange, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(s.Phase))
}

// skipUnneeded ends every step that could begin now and is not needed, since the value that it
// waited for did not change.
func (x *execution) skipUnneeded() {
	for again := true; again; {
		again = false
		for _, i := range x.conditional.steps {
			change := x.conditional.change[i]
			if x.states[i] != waiting || !x.dependenciesDone(i) || !x.mayRun(change) || !x.isSettled(change) {
				continue
			}
			step := x.Plan.Steps[i]
			x.states[i], again = ended, true
			evidence := []string{"the referenced value did not change: " + x.Plan.Changes[change].Address.String() + " is not restarted"}
			x.ends = append(x.ends, StepResult{Step: step, How: providers.NotNeeded})
			x.emit(Event{Kind: StepDone, Step: step, How: providers.NotNeeded, Evidence: evidence})
		}
	}
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
