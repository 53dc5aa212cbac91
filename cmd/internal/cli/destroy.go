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
		Long: "Plan the end of everything that vmctl made for these files, ask, and carry it\n" +
			"out: VMs are requested to stop before they are forced, and nothing is deleted\n" +
			"before what uses it is confirmed gone.\n\n" +
			"--target takes in what needs the target.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.destroy(cmd.Context(), plan, apply) },
	}
	plan.register(cmd.Flags())
	apply.register(cmd.Flags())
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
