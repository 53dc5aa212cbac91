package cli

import (
	"context"

	"github.com/spf13/cobra"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) applyCommand() *cobra.Command {
	var plan planFlags
	var apply applyFlags
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the world what the files say",
		Long: "Plan as `vmctl plan` does, ask, and carry out the steps. The first failure that\n" +
			"matters stops it; what was done, failed and was not run is listed, with what to\n" +
			"type next. A blocked change in scope starts nothing.\n\n" +
			"With --json, each line is a document: the plan, every event, the summary.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.apply(cmd.Context(), plan, apply) },
	}
	plan.register(cmd.Flags())
	apply.register(cmd.Flags())
	return cmd
}

func (a *app) apply(ctx context.Context, plan planFlags, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	return a.carryOut(ctx, p, mission{
		command: "apply", verb: "Apply", title: "Plan for " + p.owner.Name, plan: plan, apply: apply, outputs: true,
		options: func(s *state.Snapshot) (planner.Options, error) { return a.options(p, s, plan) },
		enter:   a.howToEnter,
	})
}

// howToEnter says how to get into the first VM that the plan brought up.
func (a *app) howToEnter(plan *planner.Plan) []string {
	for _, c := range plan.Changes {
		if c.Kind == spec.VM && c.Action == providers.Create {
			return []string{a.commandLine("vm shell", planFlags{}, c.Address.String()) + " opens a shell in it"}
		}
	}
	return nil
}
