package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/internal/gitx"
	"vmctl/providers"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// mergeFlags are the flags of `workspace merge`.
type mergeFlags struct {
	squash  bool
	trusted string
}

func (a *app) workspaceMergeCommand() *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:   "merge NAME",
		Short: "Merge the commits of a workspace into what is checked out on this host",
		Long: "Fetch the commits of a workspace, and merge its branch into the branch that is checked\n" +
			"out in the repository of this host: whole, or not at all. Where they conflict, or where a\n" +
			"file that is in no commit would be overwritten, an ignored one too, nothing is changed.\n" +
			"Commits that change files on which vmctl acts (*.vmctl.hcl, and what the spec reads) are\n" +
			"merged only if --trust-spec names the head of the branch, after you have read them.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrusted(f.trusted); err != nil {
				return err
			}
			return a.workspaceMerge(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().BoolVar(&f.squash, "squash", false, "make one commit with all changes, in place of a merge")
	cmd.Flags().StringVar(&f.trusted, "trust-spec", "", "merge changes to files of the spec if `SHA` is the head of the branch")
	return cmd
}

// checkTrusted fails unless --trust-spec is not given, or names a commit as a whole.
func checkTrusted(commit string) error {
	if commit == "" || gitx.IsObjectName(commit) {
		return nil
	}
	return rejected("usage", "--trust-spec needs the whole name of a commit, 40 or 64 hexadecimal digits, and not "+fmt.Sprintf("%q", commit))
}

// repositories finds the repositories that the spec of a project names.
func (a *app) repositories(p *project) workspace.Repositories {
	return workspace.Repositories{Files: p.config.Dir, Read: a.specPaths(p), Host: workspace.Host{
		Home: a.env.Getenv("HOME"), Enter: func() (providers.Guest, error) { return onThisHost(a.env) },
	}}
}

func (a *app) workspaceMerge(ctx context.Context, name string, f mergeFlags) error {
	err := a.inWorkspace(ctx, name, "vmctl workspace merge", "", func(w enteredWorkspace) error {
		x, ok := providers.Ability[workspace.Exchanger](w.system.Provider)
		if !ok {
			return fmt.Errorf("merge %s: its provider exchanges no commits", w.address)
		}
		if err := a.checkClean(w); err != nil {
			return err
		}
		moved, err := x.Fetch(ctx, w.object.ID, f.trusted)
		if err != nil {
			return a.notMerged(w, f, err)
		}
		repositories := a.repositories(w.project)
		values := spec.Revealed(w.values())
		branch := ctyread.Text(values, "branch")
		if err := a.warnLeft(ctx, w, repositories, moved.To); err != nil {
			return err
		}
		m, err := repositories.Merge(ctx, workspace.Merge{
			Repo: ctyread.Text(values, "repo"), Branch: branch, Squash: f.squash, Trusted: f.trusted,
			Title: mergeTitle(w.address, branch, f),
		})
		if err != nil {
			return a.notMerged(w, f, err)
		}
		a.show(movedDocument{FormatVersion: view.FormatVersion, Address: w.address.String(), Branch: m.Branch, From: m.From, To: m.To}, func(s view.Screen) {
			view.Moved(s, w.address.String(), m.Branch, m.From, m.To)
		})
		return nil
	})
	var early before
	if errors.As(err, &early) {
		return early.err
	}
	return err
}

// mergeTitle returns the first line of the message of a merge.
func mergeTitle(addr spec.Address, branch string, f mergeFlags) string {
	if f.squash {
		return "Squash branch '" + branch + "' of " + addr.String()
	}
	return "Merge branch '" + branch + "' of " + addr.String()
}

// warnLeft warns of committed work that the branch, at its commit on this host, does not have.
func (a *app) warnLeft(ctx context.Context, w enteredWorkspace, r workspace.Repositories, tip string) error {
	var left []string
	for _, d := range w.object.Dirty {
		switch d.Sort {
		case workspace.Stashes:
			left = append(left, d.String())
		case workspace.Commits:
			beyond, err := r.Beyond(ctx, ctyread.Text(spec.Revealed(w.values()), "repo"), tip, d.Items)
			if err != nil {
				return err
			}
			if len(beyond) > 0 {
				left = append(left, (providers.Dirt{Sort: d.Sort, Items: beyond}).String())
			}
		}
	}
	if len(left) > 0 {
		view.Warning(a.errScreen(), w.address.String()+" has work that is not on its branch, and that is not merged: "+strings.Join(left, "; "))
	}
	return nil
}

// notMerged returns the problem of a merge that was refused.
func (a *app) notMerged(w enteredWorkspace, f mergeFlags, err error) error {
	var (
		refused  *workspace.RefusedError
		conflict *workspace.ConflictError
		changed  *workspace.SpecError
		known    *problem
	)
	words := []string{w.address.String()}
	if f.squash {
		words = append(words, "--squash")
	}
	switch {
	case errors.As(err, &refused):
		e := newProblem(classRefused, "not_merged", "merge "+w.address.String()+": "+refused.Why, refused.Next...)
		e.Seen = refused.Seen
		return e
	case errors.As(err, &conflict):
		e := newProblem(classRefused, "conflict", "merge "+w.address.String()+": "+conflict.Error(),
			"merge "+conflict.Into+" into the branch in the workspace, resolve the conflicts and commit there, then repeat the command",
			"bring the commits of the branch there: "+a.commandLine("workspace push", planFlags{}, w.address.String()))
		e.Seen = conflict.Files
		return e
	case errors.As(err, &changed):
		e := newProblem(classRefused, "untrusted_spec", "merge "+w.address.String()+": "+changed.Error(),
			"read the changes: "+a.commandLine("workspace diff", planFlags{}, w.address.String()),
			"then merge them: "+a.commandLine("workspace merge", planFlags{}, append(words, "--trust-spec="+changed.Head)...))
		e.Seen = changed.Files
		return e
	case errors.As(err, &known):
		return err
	}
	return fmt.Errorf("merge %s: %w", w.address, err)
}
