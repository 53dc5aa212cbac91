package executor

import (
	"cmp"
	"slices"
	"time"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// Summary describes the outcome of an apply.
type Summary struct {
	Done        []StepResult // by address, then in the plan's order, as the other lists are
	Failed      []StepResult // contractual failures
	Warned      []StepResult // diagnostic failures
	NotRun      []planner.Step
	Down        []spec.Address // taken down by this apply and not brought up again
	Interrupted bool           // the context ended before the last step had
}

// StepResult describes the outcome of one step.
type StepResult struct {
	Step    planner.Step
	How     providers.How
	Failure *providers.Problem
	Elapsed time.Duration
}

// OK reports whether no contractual step failed, every step ran, and the apply was not
// interrupted.
func (s Summary) OK() bool { return len(s.Failed) == 0 && len(s.NotRun) == 0 && !s.Interrupted }

func (x *execution) summary() Summary {
	s := Summary{Interrupted: x.interrupted}
	slices.SortFunc(x.ends, func(a, b StepResult) int { return byAddress(a.Step, b.Step) })
	for _, e := range x.ends {
		switch {
		case e.Failure == nil:
			s.Done = append(s.Done, e)
		case e.Step.Class == providers.Diagnostic:
			s.Warned = append(s.Warned, e)
		default:
			s.Failed = append(s.Failed, e)
		}
	}
	for i, st := range x.states {
		if st == waiting {
			s.NotRun = append(s.NotRun, x.Plan.Steps[i])
		}
	}
	slices.SortFunc(s.NotRun, byAddress)
	for i := range x.Plan.Changes {
		if x.takenDown[i] {
			s.Down = append(s.Down, x.Plan.Changes[i].Address)
		}
	}
	return s
}

// Then returns the summary of this run and a later one.
func (s Summary) Then(later Summary) Summary {
	return Summary{
		Done: slices.Concat(s.Done, later.Done), Failed: slices.Concat(s.Failed, later.Failed),
		Warned: slices.Concat(s.Warned, later.Warned), NotRun: slices.Concat(s.NotRun, later.NotRun),
		Down: slices.Concat(s.Down, later.Down), Interrupted: s.Interrupted || later.Interrupted,
	}
}

// byAddress orders steps by address, and those of one address as the plan does.
func byAddress(a, b planner.Step) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.ID, b.ID))
}
