package cli

import (
	"bytes"
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

func (a *app) workspaceDiffCommand() *cobra.Command {
	var stat bool
	cmd := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show what was changed in a workspace since it was made",
		Long: "Show how the files of a workspace differ from the commit that it began with, committed\n" +
			"or not. Of files that git does not know yet only the names are shown, as a warning. The\n" +
			"diff programs that the repository's settings name are not run.",
		Args: one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown := "--patch"
			if stat {
				shown = "--stat"
			}
			return a.workspaceHistory(cmd.Context(), args[0], "diff", func(base string) []string {
				return []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", shown, base, "--"}
			})
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "show the names of the files and the number of changed lines only")
	return cmd
}

func (a *app) workspaceLogCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "log NAME",
		Short: "Show the commits that were made in a workspace",
		Long:  "Show the commits of a workspace since the one that it began with, the newest first.",
		Args:  one("the name of a workspace"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.workspaceHistory(cmd.Context(), args[0], "log", func(base string) []string {
				return []string{"log", "--no-color", "--no-show-signature", "--no-mailmap", "--format=%h %as %an: %s", base + "..HEAD", "--"}
			})
		},
	}
}

type historyDocument struct {
	FormatVersion string   `json:"format_version"`
	Address       string   `json:"address"`
	Base          string   `json:"base"`
	Text          string   `json:"text"`
	Untracked     []string `json:"untracked"` // the files that git does not know yet, as workspace status shows them
}

// workspaceHistory shows what git says in a workspace about what came after its base.
func (a *app) workspaceHistory(ctx context.Context, name, verb string, command func(base string) []string) error {
	err := a.inWorkspace(ctx, name, "vmctl workspace "+verb, "", func(w enteredWorkspace) (err error) {
		doc := historyDocument{
			FormatVersion: view.FormatVersion, Address: w.address.String(), Base: ctyread.Text(w.object.Attrs, "base"), Untracked: []string{},
		}
		host, ok := providers.Ability[providers.Host](w.system.Provider)
		if !ok {
			return fmt.Errorf("%s cannot be entered", w.address)
		}
		g, err := host.Enter(ctx, *w.object, spec.Revealed(w.values()))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, g.Close()) }()
		var said, failed bytes.Buffer
		o, err := g.Run(ctx, providers.Command{Args: gitx.Args(command(doc.Base)...), Stdout: &said, Stderr: &failed})
		switch {
		case err != nil:
			return fmt.Errorf("%s of %s: %w", verb, w.address, err)
		case o.Status != 0:
			e := newProblem(classFailed, "git_failed", fmt.Sprintf("%s of %s: git ended with status %d", verb, w.address, o.Status),
				a.commandLine("workspace status", planFlags{}, w.address.String()))
			e.Seen = []string{strings.TrimSpace(failed.String())}
			return e
		}
		doc.Text = strings.ToValidUTF8(said.String(), "\ufffd")
		for _, d := range w.object.Dirty {
			if d.Sort == workspace.Untracked {
				doc.Untracked = d.Items
			}
		}
		if verb == "diff" && len(doc.Untracked) > 0 {
			view.Warning(a.errScreen(), "not shown, since git does not know them yet: "+strings.Join(doc.Untracked, ", "))
		}
		if a.global.json {
			a.document(doc)
			return nil
		}
		out := a.consoleWriter()
		out.Write(said.Bytes())
		out.Flush()
		return nil
	})
	var early before
	if errors.As(err, &early) {
		return early.err
	}
	return err
}
