package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

func (a *app) workspaceConflictsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "conflicts [BRANCH...]",
		Short: "Show which branches could not all be merged",
		Long: "Compare the branches of all workspaces, each with each other one of its repository, and\n" +
			"show which ones collide, and in which files. One BRANCH is compared with all others,\n" +
			"several are compared with one another. BRANCH is the name of a workspace, or any branch of\n" +
			"the same repository, such as main.\n\n" +
			"What this host has of the branches is compared. Commits of a workspace that were not\n" +
			"fetched are named. No branch, index or file changes.\n\n" +
			"The exit code is 0 if no branches collide, 2 if some do, and 6 if none do as far as this\n" +
			"host has their commits, and some were not fetched or could not be read.",
		Args: between(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error { return a.workspaceConflicts(cmd.Context(), args) },
	}
}

func (a *app) workspaceConflicts(ctx context.Context, names []string) (err error) {
	p, err := a.openRecorded(ctx)
	if err != nil {
		return err
	}
	c := comparison{app: a, repositories: a.repositories(p)}
	if err := c.choose(ctx, p, names); err != nil {
		return err
	}
	s, err := a.observeProject(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	for i := range c.sides {
		if err := c.read(ctx, s, &c.sides[i]); err != nil {
			return err
		}
	}
	doc := view.ConflictsDocument{FormatVersion: view.FormatVersion, Branches: []view.ComparedEntry{}, Collisions: []view.CollisionEntry{}}
	if err := c.compare(ctx, &doc); err != nil {
		return err
	}
	a.show(doc, func(screen view.Screen) { view.Conflicts(screen, doc) })
	switch {
	case len(doc.Collisions) > 0:
		return status{code: 2}
	case slices.ContainsFunc(doc.Branches, view.ComparedEntry.Partly):
		return status{code: classRefused.code()}
	}
	return nil
}

// side is a branch that is compared with others.
type side struct {
	address spec.Address // of its workspace; zero: it has none
	repo    string       // as a spec names it
	focus   bool         // only pairs with such a side are compared
	view.ComparedEntry
}

// comparison compares branches with one another.
type comparison struct {
	app          *app
	repositories workspace.Repositories
	sides        []side
}

// choose finds the sides that names mean.
func (c *comparison) choose(ctx context.Context, p *project, names []string) error {
	var all, chosen []side
	for i := range p.config.Resources {
		if r := p.config.Resources[i]; r.Address.Kind == spec.Workspace {
			one, err := c.sideOf(ctx, r)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
	}
	for _, name := range names {
		found, err := c.named(ctx, p, all, name)
		if err != nil {
			return err
		}
		chosen = append(chosen, found...)
	}
	branches := map[[2]string]bool{}
	for _, one := range chosen {
		branches[[2]string{one.Repository, one.Branch}] = true
	}
	if len(branches) < 2 { // one is compared with all
		for _, one := range all {
			if !branches[[2]string{one.Repository, one.Branch}] {
				one.focus = len(branches) == 0
				chosen = append(chosen, one)
			}
		}
	}
	c.sides = chosen
	return nil
}

func (c *comparison) sideOf(ctx context.Context, r spec.Resource) (side, error) {
	values := spec.Revealed(r.Want)
	one := side{address: r.Address, repo: ctyread.Text(values, "repo"), focus: true, ComparedEntry: view.ComparedEntry{
		Branch: ctyread.Text(values, "branch"), Address: r.Address.String(), Unfetched: []string{}, Uncommitted: []string{}, Next: []string{},
	}}
	checkout, err := c.repositories.Checkout(ctx, one.repo)
	if err != nil {
		return one, fmt.Errorf("compare the branch of %s: %w", r.Address, err)
	}
	one.Repository = checkout.Repository
	return one, nil
}

// named returns the sides that a name means: workspaces, or else a branch of their repositories.
func (c *comparison) named(ctx context.Context, p *project, all []side, name string) (found []side, err error) {
	addrs, unknown := p.config.Lookup(name, spec.Workspace)
	for _, one := range all {
		if one.Branch == name || slices.Contains(addrs, one.address) {
			found = append(found, one)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	for _, one := range all {
		if slices.ContainsFunc(found, func(s side) bool { return s.Repository == one.Repository }) {
			continue
		}
		tip, err := c.repositories.Tip(ctx, one.Repository, name)
		if err != nil {
			return nil, err
		}
		if tip != "" {
			found = append(found, side{repo: one.repo, focus: true, ComparedEntry: view.ComparedEntry{
				Branch: name, Repository: one.Repository, Unfetched: []string{}, Uncommitted: []string{}, Next: []string{},
			}})
		}
	}
	if len(found) == 0 {
		return nil, rejected("unknown_resource", unknown.Error()+" No repository of a workspace has such a branch")
	}
	return found, nil
}

// read completes a side with the commit of this host, and with what the workspace has beyond it.
func (c *comparison) read(ctx context.Context, s observation, one *side) error {
	var err error
	if one.Commit, err = c.repositories.Tip(ctx, one.Repository, one.Branch); err != nil || one.address == (spec.Address{}) {
		return err
	}
	v := s.at(one.address)
	switch {
	case v.unknown != nil:
		one.Unknown, one.Next = v.unknown.Error(), v.own.Advice(v.unknown.Next)
		return nil
	case v.object == nil:
		return nil
	case v.object.Unreadable["dirty"] != "":
		one.Unknown = v.object.Unreadable["dirty"]
		return nil
	}
	var commits []string
	for _, d := range v.object.Dirty {
		switch {
		case d.Sort == workspace.Commits:
			commits = append(commits, d.Items...)
		case workspace.IsChange(d.Sort):
			one.Uncommitted = append(one.Uncommitted, d.String())
		}
	}
	if head := ctyread.Text(v.object.Attrs, "head"); head != "" && !slices.Contains(commits, head) {
		commits = append(commits, head)
	}
	if one.Unfetched, err = c.repositories.Beyond(ctx, one.repo, one.Commit, commits); err != nil {
		return err
	}
	if len(one.Unfetched) > 0 {
		one.Next = []string{c.app.commandLine("workspace fetch", planFlags{}, one.Address)}
	}
	return nil
}

// compare compares each pair of branches of one repository once.
func (c *comparison) compare(ctx context.Context, doc *view.ConflictsDocument) error {
	done := map[[3]string]bool{}
	for i, other := range c.sides {
		doc.Branches = append(doc.Branches, other.ComparedEntry)
		for _, one := range c.sides[:i] {
			pair := [3]string{one.Repository, min(one.Branch, other.Branch), max(one.Branch, other.Branch)}
			if !one.comparable(other) || done[pair] {
				continue
			}
			done[pair] = true
			doc.Pairs++
			found, err := c.repositories.Collide(ctx, one.Repository, one.Commit, other.Commit)
			if err != nil {
				return err
			}
			if found != nil {
				doc.Collisions = append(doc.Collisions, view.CollisionEntry{Branches: [2]string{one.Branch, other.Branch}, Files: append([]string{}, found.Files...)})
			}
		}
	}
	return nil
}

// comparable reports whether two sides are a pair that was asked for.
func (s side) comparable(other side) bool {
	return s.Repository == other.Repository && s.Branch != other.Branch && (s.focus || other.focus) && s.Commit != "" && other.Commit != ""
}
