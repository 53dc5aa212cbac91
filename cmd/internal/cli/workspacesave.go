package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
	"vmctl/providers/workspace"
)

func (a *app) workspaceSaveCommand() *cobra.Command {
	var o workspace.SaveOptions
	cmd := &cobra.Command{
		Use:   "save NAME",
		Short: "Save all work in a workspace in the repository of this host",
		Long: "Save the commits, the index, the files and the stashes of a workspace under a reference\n" +
			"refs/vmctl/NAME/TIME of this host's repository, which has every object of it then. The\n" +
			"workspace stays as it is.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.workspaceSaver(cmd.Context(), args[0], "save", func(ctx context.Context, s workspace.Saver, w enteredWorkspace) (workspace.Saved, error) {
				o.As = w.address
				return s.Save(ctx, w.object.ID, o)
			})
		},
	}
	cmd.Flags().BoolVar(&o.Ignored, "ignored", false, "save the files that git ignores, too")
	return cmd
}

func (a *app) workspaceRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore NAME [SAVE]",
		Short: "Bring saved work back into a workspace",
		Long: "Bring what workspace save has saved back into a workspace of the same branch: the newest\n" +
			"save, or the one with the reference or time SAVE. A workspace with work of its own, and files that\n" +
			"git ignores and that would be overwritten, stay as they are (exit 6).",
		Args: between(1, 2, "the name of a workspace and perhaps a save"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 1 {
				name = args[1]
			}
			return a.workspaceSaver(cmd.Context(), args[0], "restore", func(ctx context.Context, s workspace.Saver, w enteredWorkspace) (workspace.Saved, error) {
				return s.Restore(ctx, w.object.ID, workspace.RestoreOptions{Name: name, As: w.address, Was: w.project.formerly(w.observation.snapshot, w.address)})
			})
		},
	}
}

type savedDocument struct {
	FormatVersion string          `json:"format_version"`
	Ref           string          `json:"ref"`
	Commit        string          `json:"commit"`
	Before        bool            `json:"saved_before"`
	Aside         string          `json:"aside,omitempty"` // the save of what was there before a restore that went on
	Facts         workspace.Facts `json:"facts"`
}

func (a *app) workspaceSaver(ctx context.Context, name, verb string, do func(context.Context, workspace.Saver, enteredWorkspace) (workspace.Saved, error)) error {
	err := a.inWorkspace(ctx, name, "vmctl workspace "+verb, "", func(w enteredWorkspace) error {
		saver, ok := providers.Ability[workspace.Saver](w.system.Provider)
		if !ok {
			return fmt.Errorf("%s %s: its provider saves nothing", verb, w.address)
		}
		s, err := do(ctx, saver, w)
		var refused *workspace.RefusedError
		switch {
		case errors.As(err, &refused):
			e := newProblem(classRefused, "not_"+verb+"d", verb+" "+w.address.String()+": "+refused.Why, refused.Next...)
			e.Seen = refused.Seen
			return e
		case err != nil:
			return fmt.Errorf("%s %s: %w", verb, w.address, err)
		}
		a.show(savedDocument{FormatVersion: view.FormatVersion, Ref: s.Ref, Commit: s.Commit, Before: s.Before, Aside: s.Aside, Facts: s.Facts}, func(screen view.Screen) {
			view.Saved(screen, w.address.String(), verb, s.Ref, contents(s.Facts), s.Aside)
		})
		return nil
	})
	var early before
	if errors.As(err, &early) {
		return early.err
	}
	return err
}

func contents(f workspace.Facts) string {
	return fmt.Sprintf("%d staged, %d unstaged, %d untracked, %d ignored (%d bytes), %d stashes", f.Staged, f.Unstaged, f.Untracked, f.Ignored, f.IgnoredBytes, f.Stashes)
}
