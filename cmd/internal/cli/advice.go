package cli

import (
	"regexp"
	"slices"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
)

// advised returns a copy of a failure with its next commands as the user has to type them. A
// failure without next commands gets one by its outcome. nil stays nil.
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

// advice returns a next command for a failure by its outcome alone.
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

// typed adds this run's flags to the commands in a line of a provider or the planner, which
// know no flags. It leaves a mention of vmctl without a command as it is.
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

// typedBlocks adds this run's flags to the commands that a plan's blocked changes suggest.
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
