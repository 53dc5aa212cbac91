package executor

import (
	"cmp"
	"slices"

	"vmctl/planner"
	"vmctl/providers"
)

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

// Then returns the summary of two runs, one after the other.
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
