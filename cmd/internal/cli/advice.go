package cli

import (
	"slices"

	"vmctl/executor"
	"vmctl/providers"
)

// advised returns a copy of a failure that has advice: if it has none, advice by its outcome.
// nil stays nil.
func (a *app) advised(f *providers.Problem, m mission) *providers.Problem {
	if f == nil || len(f.Next) > 0 {
		return f
	}
	with := *f
	with.Next = a.advice(f.Outcome, m)
	return &with
}

// advice returns the advice for a failure by its outcome alone.
func (a *app) advice(o providers.Outcome, m mission) []providers.Advice {
	switch o {
	case providers.Failed:
		return providers.SayVmctl("see what is there now: ", "plan")
	case providers.Timeout:
		return providers.SayVmctl("see how far it came: ", "plan")
	case providers.Unsafe:
		return providers.SayVmctl("see what is in the way: ", "plan")
	case providers.Stale:
		return providers.Say("plan anew, from what is there now: " + a.commandLine(m.command, m.plan, m.names...))
	default:
		return providers.Vmctl("plan")
	}
}

// advisedResults returns a copy of the results with every failure advised.
func (a *app) advisedResults(all []executor.StepResult, m mission) []executor.StepResult {
	all = slices.Clone(all)
	for i := range all {
		all[i].Failure = a.advised(all[i].Failure, m)
	}
	return all
}

// advisedSummary returns a copy of a summary with every failure advised.
func (a *app) advisedSummary(s executor.Summary, m mission) executor.Summary {
	s.Failed, s.Warned = a.advisedResults(s.Failed, m), a.advisedResults(s.Warned, m)
	return s
}
