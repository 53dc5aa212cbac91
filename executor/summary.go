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
		if x.lowered[i] {
			s.Down = append(s.Down, x.Plan.Changes[i].Address)
		}
	}
	return s
}

// byAddress orders steps by address, and those of one address as the plan does.
func byAddress(a, b planner.Step) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.ID, b.ID))
}
