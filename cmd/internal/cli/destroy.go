package cli

import (
	"context"

	"github.com/spf13/cobra"

	"vmctl/planner"
	"vmctl/state"
)

func (a *app) destroyCommand() *cobra.Command {
	var plan planFlags
	var apply applyFlags
	cmd := &cobra.Command{
		Annotations: streams(),
		Use:         "destroy",
		Short:       "Remove what vmctl made",
		Long: "Make a plan that removes everything that vmctl made for these files, ask, and carry\n" +
			"it out. VMs are asked to shut down before they are forced off. An object is deleted\n" +
			"only after everything that uses it is confirmed gone.\n\n" +
			"With --target, destroy also removes everything that needs the target.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.destroy(cmd.Context(), plan, apply) },
	}
	plan.register(cmd.Flags())
	apply.register(cmd.Flags())
	apply.registerWake(cmd.Flags())
	return cmd
}

func nothingToDestroy(*planner.Plan) string { return "There is nothing to destroy." }

func (a *app) destroy(ctx context.Context, plan planFlags, apply applyFlags) error {
	if err := apply.check(); err != nil {
		return err
	}
	p, err := a.openToEnd()
	if err != nil {
		return err
	}
	return a.carryOut(ctx, p, mission{
		command: "destroy", verb: "Destroy", title: "Plan to destroy " + p.owner.Name, plan: plan, apply: apply,
		idle: nothingToDestroy, destroy: true,
		options: func(s *state.Snapshot) (planner.Options, error) { return a.options(p, s, plan) },
	})
}
