package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/state"
)

func (a *app) stateRebuildCommand() *cobra.Command {
	var wait lockWait
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write the missing records of objects that bear the project's mark",
		Long: "Look for this project's objects in every system that the files name, and write the\n" +
			"records that are missing. A record gets the values that the system shows, and for\n" +
			"the others those of the files. No object is changed. If no block declares an\n" +
			"object, its record prevents its destruction.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.stateRebuild(cmd.Context(), wait) },
	}
	wait.register(cmd.Flags())
	return cmd
}

func (a *app) stateRebuild(ctx context.Context, wait lockWait) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	var plan *planner.Plan
	err = a.rewrite(ctx, p, a.lockOwner(p, "state rebuild", wait), func(j state.Journal) error {
		plan, err = a.rebuild(ctx, p, j)
		return err
	})
	if err != nil {
		return err
	}
	doc := view.StateRebuildJSON(plan, a.ownFlags(planFlags{}))
	a.show(doc, func(s view.Screen) { view.StateRebuild(s, doc, a.commandLine("plan", planFlags{})) })
	for _, f := range plan.Findings {
		if f.Kind == providers.FindUnknown {
			return newProblem(classRefused, "unread", "state rebuild: something could not be read: there may be more that is ours",
				"see to it, then: "+a.commandLine("state rebuild", planFlags{}))
		}
	}
	return nil
}

func (a *app) rebuild(ctx context.Context, p *project, j state.Journal) (plan *planner.Plan, err error) {
	if err := a.makeDigestKey(p); err != nil {
		return nil, err
	}
	o := planner.Options{Types: a.types, Project: p.owner, DigestKey: p.key}
	world, err := planner.Observe(ctx, a.opener(p), p.config, j.Snapshot(), o)
	defer func() { err = errors.Join(err, world.Close()) }()
	if err != nil {
		return nil, err
	}
	if plan, err = planner.Rebuild(p.config, j.Snapshot(), world, o); err != nil {
		return nil, err
	}
	run, err := newID(a.env.Rand)
	if err != nil {
		return nil, err
	}
	summary, err := executor.Apply(ctx, executor.Run{
		Plan: plan, World: world, Journal: j, Resolve: a.resolver(p.config), ID: run, DigestKey: p.key, Now: a.env.Now,
		Watch: func(e executor.Event) { a.trace(ctx, e) },
	})
	if err == nil && !summary.OK() {
		err = fmt.Errorf("state rebuild: %s written, %d not: %w", counted(len(summary.Done), "record"), len(summary.NotRun), context.Canceled)
	}
	return plan, err
}
