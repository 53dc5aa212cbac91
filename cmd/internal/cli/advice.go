package cli

import (
	"regexp"
	"slices"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
)

// advised is a failure with something to type next, whatever its provider knew.
func (a *app) advised(f *providers.Failure, m mission) *providers.Failure {
	if f == nil {
		return nil
	}
	with := *f
	with.Next = nil
	for _, line := range f.Next {
		with.Next = append(with.Next, a.typed(line, m))
	}
	if len(with.Next) == 0 {
		with.Next = []string{a.advice(f.Outcome, m)}
	}
	return &with
}

// advice is what to do after a failure of which nothing else is known.
func (a *app) advice(o providers.Outcome, m mission) string {
	plan := a.commandLine("plan", m.plan)
	switch o {
	case providers.Failed:
		return "see what is there now: " + plan
	case providers.Timeout:
		return "see how far it came: " + plan
	case providers.Unsafe:
		return "see what is in the way: " + plan
	case providers.Stale:
		return "plan anew, from what is there now: " + a.commandLine(m.command, m.plan, m.names...)
	default:
		return plan
	}
}

var ownCommand = regexp.MustCompile(`\bvmctl ([a-z]+)`)

// typed is what a provider or the planner says to type, which know no flags, as it
// has to be typed here. What only speaks of vmctl stays as it is.
func (a *app) typed(line string, m mission) string {
	switch line {
	case "vmctl plan":
		return a.commandLine("plan", m.plan)
	case "vmctl apply":
		return a.commandLine("apply", m.plan)
	}
	return ownCommand.ReplaceAllStringFunc(line, func(words string) string {
		name := ownCommand.FindStringSubmatch(words)[1]
		if !slices.Contains(a.commands, name) {
			return words
		}
		return a.commandLine("", planFlags{}) + " " + name
	})
}

// typedBlocks lets what a plan says to type be what has to be typed here.
func (a *app) typedBlocks(plan *planner.Plan, m mission) {
	for i := range plan.Changes {
		c := &plan.Changes[i]
		if c.Blocked == nil {
			continue
		}
		block := *c.Blocked
		block.Next = nil
		for _, line := range c.Blocked.Next {
			block.Next = append(block.Next, a.typed(line, m))
		}
		c.Blocked = &block
	}
}

// advisedResults are results of which every failure is advised.
func (a *app) advisedResults(all []executor.StepResult, m mission) []executor.StepResult {
	all = slices.Clone(all)
	for i := range all {
		all[i].Failure = a.advised(all[i].Failure, m)
	}
	return all
}

// advisedSummary is a summary of which every failure is advised.
func (a *app) advisedSummary(s executor.Summary, m mission) executor.Summary {
	s.Failed, s.Warned = a.advisedResults(s.Failed, m), a.advisedResults(s.Warned, m)
	return s
}
