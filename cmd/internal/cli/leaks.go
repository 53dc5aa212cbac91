package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func (a *app) leaksCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "leaks",
		Short: "Show what vmctl left behind",
		Long: "List what vmctl made, locked, began or wrote down, and that nothing accounts for: objects\n" +
			"with the mark of this project in neither the spec nor the state, records of objects that\n" +
			"are gone, half-made objects, remains of objects and locks whose holders are gone, copies\n" +
			"of jobs that could not be removed, and steps that an interrupted run left. After a destroy there is nothing. Leaks changes nothing and takes\n" +
			"no lock.\n\n" +
			"The exit code is 0 if there is nothing, 2 if there is, and 6 if there is nothing in what\n" +
			"could be read, and something could not be read.",
		Args: between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.leaks(cmd.Context()) },
	}
}

func (a *app) leaks(ctx context.Context) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	snapshot, holder, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	found, _, err := a.findLeaks(ctx, p, snapshot.With(planner.Moves(p.config, snapshot)...), holder)
	if err != nil {
		return err
	}
	left, err := a.leftCopies(p)
	if err != nil {
		return err
	}
	found.All = append(found.All, left...)
	doc := view.LeaksJSON(found, p.owner, a.ownFlags(planFlags{}))
	if holder != nil {
		doc.Lock = view.HolderText(*holder)
	}
	a.show(doc, func(s view.Screen) { view.Leaks(s, doc, a.commandLine("cleanup", planFlags{})) })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case len(doc.Leaks) > 0:
		return status{code: 2}
	case len(doc.Unread) > 0:
		return status{code: classRefused.code()}
	default:
		return nil
	}
}

// findLeaks observes the world, and lists what leaked. Where the files have no provider it looks into the one of resources that name
// none; searched has that, too, if it could be looked into.
func (a *app) findLeaks(ctx context.Context, p *project, s *state.Snapshot, holder *state.Holder) (found planner.Leaks, searched *spec.Config, err error) {
	o := planner.Options{Types: a.types, Project: p.owner, DigestKey: p.key, Held: holder != nil, Inward: true}
	searched = p.config.WithBuiltIn()
	world, err := planner.Observe(ctx, a.opener(p), searched, s, o)
	if err != nil && searched != p.config {
		a.notSearched(searched.Providers[0].Ref.String(), err.Error())
		searched, err = p.config, world.Close()
		if err == nil {
			world, err = planner.Observe(ctx, a.opener(p), searched, s, o)
		}
	}
	if err != nil {
		return found, searched, errors.Join(err, world.Close())
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	a.logObserved(ctx, world)
	delta, err := planner.Diff(searched, s, world, o)
	if err != nil {
		return found, searched, err
	}
	found = planner.LeaksOf(delta, world)
	found.Unread = slices.DeleteFunc(found.Unread, func(l planner.Leak) bool {
		unnamed := searched != p.config && l.System != nil && l.System.Ref == searched.Providers[0].Ref
		if unnamed {
			a.notSearched(l.System.String(), l.Evidence[0])
		}
		return unnamed
	})
	return found, searched, nil
}

// leftCopies lists the copies of jobs that have ended, and which are still there.
func (a *app) leftCopies(p *project) (all []planner.Leak, err error) {
	records, _, err := a.jobs(p, "leaks").List()
	for _, r := range records {
		if r.LeftCopy != nil {
			all = append(all, planner.Leak{Finding: providers.Finding{
				Kind: providers.FindLeftover, Object: "the copy of job " + string(r.ID), Evidence: []string{r.LeftCopy.String()},
				Next: providers.SayVmctl("try again: ", "apply"),
			}})
		}
	}
	return all, err
}

// notSearched tells of a provider that could not be looked into, and that nothing names.
func (a *app) notSearched(system, why string) {
	view.Warning(a.errScreen(), system+" was not looked into, and nothing names it: "+why)
}
