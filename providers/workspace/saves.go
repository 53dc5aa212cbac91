package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// Vault is where saves are: a repository of this host.
type Vault struct {
	Host    Host
	Files   string // the spec's folder
	Repo    string // the repository, as the spec names it
	Project providers.Project
	Of      []spec.Address // the addresses under which the saves of one workspace are; none: the saves of all
}

// Saves returns the saves of a workspace, or of all, the newest first. No workspace need exist any more.
func (v Vault) Saves(ctx context.Context) ([]Saved, error) {
	p := &Provider{host: v.Host, settings: providers.Settings{Files: v.Files, Project: v.Project}}
	repository, err := p.repository(ctx, v.Repo)
	if err != nil {
		return nil, err
	}
	folders := saveFolders(v.Of)
	if len(folders) == 0 {
		folders = []string{saveRoot}
	}
	all, err := p.saves(ctx, repository, folders...)
	if err != nil {
		return nil, err
	}
	var saved []Saved
	for _, s := range all {
		saved = append(saved, s.Saved)
	}
	return saved, nil
}

type keptSave struct {
	Saved
	tree string
}

// saves returns the saves of this project below folders of references, the newest first.
func (p *Provider) saves(ctx context.Context, repository string, folders ...string) ([]keptSave, error) {
	git := p.git(repository)
	args := []string{"for-each-ref", "--format=%(objectname) %(tree) %(refname)"}
	for _, folder := range folders {
		args = append(args, strings.TrimSuffix(folder, "/"))
	}
	out, err := git.Output(ctx, args...)
	if err != nil {
		return nil, err
	}
	var all []keptSave
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(f) < 3 {
			continue
		}
		s := keptSave{Saved: Saved{Commit: f[0], Ref: f[2], Name: f[2][strings.LastIndexByte(f[2], '/')+1:]}, tree: f[1]}
		facts, err := git.Output(ctx, "cat-file", "blob", s.Commit+":facts")
		if err != nil || json.Unmarshal([]byte(facts), &s.Facts) != nil || s.Format != saveFormat {
			continue // another one's reference
		}
		if s.Project == p.settings.Project.Lineage() {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b keptSave) int { return strings.Compare(b.Name, a.Name) })
	return all, nil
}

// saveFolders returns the folders of the references of the saves that workspaces have, each once.
func saveFolders(of []spec.Address) (all []string) {
	for _, a := range of {
		if folder := saveFolder(a); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// saveRoot is the folder of the references of all saves.
const saveRoot = "refs/vmctl/"

// saveFolder returns the folder of the references of a workspace's saves, with a slash at its end. No two addresses share one.
func saveFolder(a spec.Address) string {
	folder := saveRoot + a.Name
	if a.Key != "" {
		folder += "%"
		for _, b := range []byte(a.Key) {
			if b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b == '-' || b == '_' {
				folder += string(rune(b))
				continue
			}
			folder += fmt.Sprintf("%%%02x", b)
		}
	}
	return folder + "/"
}
