package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
)

func (a *app) planCommand() *cobra.Command {
	var f planFlags
	var detailed bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would do, and change nothing",
		Long: "Compare the files, the state and the real world, and show every difference with\n" +
			"the exact steps that will close it. Nothing is changed, and no lock is taken.\n\n" +
			"--target takes in what the target needs. --exclude leaves out what needs the\n" +
			"excluded, too; a target that needs an excluded resource is an error.\n\n" +
			"The exit code is 0, with --detailed-exitcode 2 if there are changes, and 6 if\n" +
			"something could not be read.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), f, detailed) },
	}
	f.register(cmd.Flags())
	new(applyFlags).registerLock(cmd.Flags()) // so that what works with apply works here: no lock is taken
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit with 2 if there are changes, blocked ones included")
	return cmd
}

func (a *app) plan(ctx context.Context, f planFlags, detailed bool) (err error) {
	p, err := a.open()
	if err != nil {
		return err
	}
	snapshot, err := a.read(ctx, p)
	if err != nil {
		return err
	}
	o, err := a.options(p, snapshot, f)
	if err != nil {
		return err
	}
	holder, err := p.holder(ctx)
	if err != nil {
		return err
	}
	plan, world, err := planner.Make(ctx, a.opener(p), p.config, snapshot, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	a.show(view.PlanJSON(plan), func(s view.Screen) {
		view.Plan(s, plan, view.PlanOptions{
			Title: "Plan for " + p.owner.Name, Verbose: f.verbose, Holder: holder, Providers: p.config.Providers,
			Offer: view.Offer{Apply: a.offer(mission{command: "apply", plan: f}, plan)},
		})
	})
	switch {
	case detailed && (len(plan.Steps) > 0 || plan.Summary.Blocked+plan.Summary.Refused > 0):
		return status{code: 2}
	case plan.Summary.Unknown > 0:
		return status{code: classRefused.code()}
	default:
		return nil
	}
}

// offer is the command that carries out a plan, or what is free of it.
func (a *app) offer(m mission, plan *planner.Plan) string {
	f := m.plan
	f.excludes = slices.Clip(f.excludes)
	for _, c := range plan.Changes {
		if c.Blocked != nil {
			f.excludes = append(f.excludes, c.Address.String())
		}
	}
	return a.commandLine(m.command, f, m.names...)
}
