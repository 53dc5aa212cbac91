package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

type savesDocument struct {
	FormatVersion string          `json:"format_version"`
	Address       string          `json:"address"`
	Saves         []savedDocument `json:"saves"`
}

func (a *app) workspaceSavesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "saves NAME",
		Short: "List the saves of a workspace",
		Long: "List what workspace save has saved of a workspace in the repository of this host, the\n" +
			"newest first. workspace restore NAME REF brings one back; git update-ref -d REF in the\n" +
			"repository removes one.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.workspaceSaves(cmd.Context(), args[0]) },
	}
}

func (a *app) workspaceSaves(ctx context.Context, name string) error {
	err := a.inWorkspace(ctx, name, "vmctl workspace saves", "", func(w enteredWorkspace) error {
		r := a.repositories(w.project)
		all, err := workspace.Vault{
			Host: r.Host, Files: r.Files, Repo: ctyread.Text(spec.Revealed(w.values()), "repo"), Project: w.project.owner, Address: w.address,
		}.Saves(ctx)
		if err != nil {
			return err
		}
		doc := savesDocument{FormatVersion: view.FormatVersion, Address: w.address.String(), Saves: []savedDocument{}}
		for _, s := range all {
			doc.Saves = append(doc.Saves, savedDocument{FormatVersion: view.FormatVersion, Ref: s.Ref, Commit: s.Commit, Before: true, Facts: s.Facts})
		}
		a.show(doc, func(screen view.Screen) {
			if len(all) == 0 {
				view.Note(screen, w.address.String()+" has no saves.")
			}
			for _, s := range all {
				view.Saved(screen, w.address.String(), "saved", s.Ref, contents(s.Facts))
			}
		})
		return nil
	})
	var early before
	if errors.As(err, &early) {
		return early.err
	}
	return err
}
