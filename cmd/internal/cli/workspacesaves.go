package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
		Use:   "saves [NAME]",
		Short: "List the saves of a workspace, or of all",
		Long: "List what workspace save, or a removal, has saved of a workspace in the repository of this\n" +
			"host, the newest first; neither it nor its VM nor its block need be there. Without NAME, list\n" +
			"the saves of all workspaces of the project, also of those that had another name. workspace\n" +
			"restore NAME REF brings one back into a workspace of the same branch; git update-ref -d REF in\n" +
			"the repository removes one.",
		Args: between(0, 1, "the name of a workspace, or nothing"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.workspaceSaves(cmd.Context(), "")
			}
			return a.workspaceSaves(cmd.Context(), args[0])
		},
	}
}

// workspaceSaves lists the saves of the workspace of a name; "": of all.
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
	var of []spec.Address
	var repos []string
	var what string // "": all workspaces
	addr, unknown := a.workspaceOf(p, name)
	named := name != "" && unknown == nil
	switch {
	case name == "":
		repos, addr = repositoriesOf(p), spec.Address{}
	case named:
		r, _ := p.config.Resource(addr)
		repo := ctyread.Text(spec.Revealed(r.Want), "repo")
		if repo == "" {
			return rejected("unknown_value", addr.String()+": its repository is known only after an apply")
		}
		of, repos, what = append([]spec.Address{addr}, p.formerly(snapshot, addr)...), []string{repo}, addr.String()
		if once, is := savedAs(name); is && once != addr { // the name is the branch of this one, and may be that which another one had
			of = append(of, once)
		}
	default: // neither a block nor a record has the name any more, and saves may
		var is bool
		if addr, is = savedAs(name); !is {
			return unknown
		}
		of, repos, what = []spec.Address{addr}, repositoriesOf(p), addr.String()
	}
	var all []workspace.Saved
	on := a.repositories(p)
	for _, repo := range repos {
		saved, err := workspace.Vault{Host: on.Host, Files: on.Files, Repo: repo, Project: p.owner, Of: of}.Saves(ctx)
		switch {
		case err == nil:
			all = append(all, saved...)
		case named:
			return fmt.Errorf("list the saves of %s: %w", what, err)
		case repo != ".": // the folder of the files need be no repository
			view.Warning(a.errScreen(), fmt.Sprintf("the saves in the repository %s are not listed: %v", repo, err))
		}
	}
	if name != "" && !named && len(all) == 0 {
		return unknown
	}
	slices.SortStableFunc(all, func(a, b workspace.Saved) int {
		return cmp.Or(strings.Compare(b.Name, a.Name), strings.Compare(a.Ref, b.Ref), strings.Compare(a.Commit, b.Commit))
	})
	all = slices.Compact(all) // two spellings of one repository
	a.showSaves(addr, what, all)
	return nil
}

func (a *app) showSaves(addr spec.Address, what string, all []workspace.Saved) {
	doc := savesDocument{FormatVersion: view.FormatVersion, Saves: []savedDocument{}}
	if (addr != spec.Address{}) {
		doc.Address = addr.String()
	}
	for _, s := range all {
		doc.Saves = append(doc.Saves, savedDocument{FormatVersion: view.FormatVersion, Ref: s.Ref, Commit: s.Commit, Before: true, Facts: s.Facts})
	}
	a.show(doc, func(screen view.Screen) {
		if len(all) == 0 {
			if what == "" {
				what = "No workspace has a save"
			} else {
				what += " has no saves"
			}
			view.Note(screen, what+".")
		}
		for _, s := range all {
			view.Saved(screen, s.Address+", branch "+s.Branch, "saved", s.Ref, contents(s.Facts), "")
		}
	})
}

// savedAs returns the address of the workspace that a name may have meant once.
func savedAs(name string) (spec.Address, bool) {
	addr, err := spec.ParseAddress(name)
	if err != nil || addr.Kind != spec.Workspace {
		addr, err = spec.ParseAddress(string(spec.Workspace) + "." + name)
	}
	return addr, err == nil
}

// repositoriesOf returns the repositories that the workspaces of the spec and the state name, sorted, each once; the folder of the files
// counts as one.
func repositoriesOf(p *project) []string {
	all := []string{"."}
	for i := range p.config.Resources {
		if r := &p.config.Resources[i]; r.Address.Kind == spec.Workspace {
			if repo := ctyread.Text(spec.Revealed(r.Want), "repo"); repo != "" {
				all = append(all, repo)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
