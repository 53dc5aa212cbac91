package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ADDRESS",
		Short: "Show everything about one resource: wanted, observed, recorded",
		Args:  one("the address of a resource"),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.showResource(cmd.Context(), args[0]) },
	}
}

func (a *app) showResource(ctx context.Context, name string) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	found, err := lookup(s.project, s.snapshot, name)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return severalError(name, found)
	}
	v := s.at(found[0])
	if v.object != nil {
		concealed := planner.Shown(*v.object, v.resource, v.record)
		v.object = &concealed
	}
	delta, err := planner.Diff(s.project.config, s.snapshot, s.world, s.options)
	if err != nil {
		return err
	}
	var change *planner.Change
	for i := range delta.Changes {
		if delta.Changes[i].Address == v.address {
			change = &delta.Changes[i]
		}
	}
	shown := view.Shown{Status: a.statusOf(ctx, v, change), Resource: v.resource, Object: v.object, Record: v.record, Own: s.own}
	a.show(view.ShowJSON(shown), func(screen view.Screen) { view.Show(screen, shown) })
	return nil
}
