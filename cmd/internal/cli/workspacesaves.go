package cli

import (
	"context"
	"fmt"

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
			"newest first; neither it nor its VM need be there. workspace restore NAME REF brings one back;\n" +
			"git update-ref -d REF in the repository removes one.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.workspaceSaves(cmd.Context(), args[0]) },
	}
}

func (a *app) workspaceSaves(ctx context.Context, name string) error {
	p, err := a.openExisting()
	if err != nil {
		return err
	}
	snapshot, _, err := a.readBeside(ctx, p)
	if err != nil {
		return err
	}
	a.addRecorded(p, snapshot)
	addr, err := workspaceOf(p, name)
	if err != nil {
		return err
	}
	r, _ := p.config.Resource(addr)
	repo := ctyread.Text(spec.Revealed(r.Want), "repo")
	if repo == "" {
		return rejected("unknown_value", addr.String()+": its repository is known only after an apply")
	}
	on := a.repositories(p)
	all, err := workspace.Vault{Host: on.Host, Files: on.Files, Repo: repo, Project: p.owner, Of: append([]spec.Address{addr}, p.formerly(snapshot, addr)...)}.Saves(ctx)
	if err != nil {
		return fmt.Errorf("list the saves of %s: %w", addr, err)
	}
	doc := savesDocument{FormatVersion: view.FormatVersion, Address: addr.String(), Saves: []savedDocument{}}
	for _, s := range all {
		doc.Saves = append(doc.Saves, savedDocument{FormatVersion: view.FormatVersion, Ref: s.Ref, Commit: s.Commit, Before: true, Facts: s.Facts})
	}
	a.show(doc, func(screen view.Screen) {
		if len(all) == 0 {
			view.Note(screen, addr.String()+" has no saves.")
		}
		for _, s := range all {
			view.Saved(screen, addr.String(), "saved", s.Ref, contents(s.Facts), "")
		}
	})
	return nil
}
