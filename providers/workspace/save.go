package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"vmctl/internal/gitx"
	"vmctl/providers"
	"vmctl/spec"
)

// Saver saves the work of workspaces in the repositories of this host.
type Saver interface {
	// Save puts all of the work in a workspace under a reference of the repository of this host: commits, index,
	// untracked files and stashes. The repository has every object of it once Save returns. A state that is saved
	// already is not saved again. A *RefusedError says why the workspace cannot be saved.
	Save(ctx context.Context, id providers.ID, o SaveOptions) (Saved, error)
	// Restore brings a save back into a workspace without work of its own. Nothing that the workspace has is lost. One that
	// was cut short goes on: what is in the workspace then stays in a save of its own. Restoring what is back already does
	// nothing.
	Restore(ctx context.Context, id providers.ID, o RestoreOptions) (Saved, error)
}

var _ Saver = (*Provider)(nil)

// SaveOptions say what is saved.
type SaveOptions struct {
	Ignored bool // the files that git ignores, too
	// As is the address under which the save is kept; zero: the one of its mark, which is older than a moved block.
	As spec.Address
}

// RestoreOptions say what is restored.
type RestoreOptions struct {
	Name string // the time of the save or its reference; "": the newest
	// As is the address under which a save of what is there is kept; zero: the one of its mark.
	As spec.Address
	// Was are further addresses under which its saves are.
	Was []spec.Address
}

// Saved is a save.
type Saved struct {
	Ref    string // in the repository of this host
	Name   string // the time, the last part of Ref
	Commit string
	Facts
	Before bool   // it was there before Save
	Aside  string // of a restore that went on: the reference of the save of what was there then; "": there was nothing
}

// Facts tell what is in a save.
type Facts struct {
	Format       int    `json:"format"`
	Project      string `json:"project"`
	Address      string `json:"address"`
	Branch       string `json:"branch"`
	Head         string `json:"head"`
	Ignores      bool   `json:"with_ignored"` // the ignored files are in it
	Staged       int    `json:"staged"`
	Unstaged     int    `json:"unstaged"`
	Untracked    int    `json:"untracked"`
	Hidden       int    `json:"hidden"` // files that git status was told to overlook
	Ignored      int    `json:"ignored"`
	IgnoredBytes int64  `json:"ignored_bytes"`
	Stashes      int    `json:"stashes"`
}

// saveFormat is the format of a save.
const saveFormat = 1

// Save implements Saver.
func (p *Provider) Save(ctx context.Context, id providers.ID, o SaveOptions) (Saved, error) {
	w, err := p.found(ctx, id)
	if err != nil {
		return Saved{}, err
	}
	if w.Owner == nil {
		return Saved{}, &RefusedError{Why: "it bears no mark of a project"}
	}
	w = w.as(o.As)
	force := ""
	if o.Ignored {
		force = withIgnored
	}
	s, err := p.snapshot(ctx, w, force)
	if err != nil {
		return Saved{}, err
	}
	for _, r := range s.refs {
		if r.sort != "commit" {
			return Saved{}, &RefusedError{Why: fmt.Sprintf("%s in it is no commit but a %s, which is not saved", r.name, r.sort), Next: []string{"delete it there, or replace it with a tag that is not annotated"}}
		}
	}
	if err := p.receiveState(ctx, w, s); err != nil {
		return Saved{}, fmt.Errorf("bring its work to this host: %w", err)
	}
	return p.keep(ctx, w, s, p.facts(w, s, o))
}

// as returns a marked workspace with another address; zero: with its own.
func (w *seen) as(a spec.Address) *seen {
	if (a == spec.Address{}) {
		return w
	}
	owner, named := *w.Owner, *w
	owner.Address, named.Owner = a, &owner
	return &named
}

// facts returns what is to be told about a save of a state.
func (p *Provider) facts(w *seen, s *state, o SaveOptions) Facts {
	return Facts{
		Format: saveFormat, Project: p.settings.Project.Lineage(), Address: w.Owner.Address.String(), Branch: w.Branch, Head: s.head, Ignores: o.Ignored,
		Staged: len(w.Staged), Unstaged: len(w.Unstaged), Untracked: len(s.untracked), Hidden: len(s.assumed) + len(s.skipped), Stashes: len(s.stashes),
	}
}

// receiveState brings all objects of a state to the repository of this host.
func (p *Provider) receiveState(ctx context.Context, w *seen, s *state) error {
	if p.onHost() { // it writes into the repository
		return nil
	}
	revisions := ended(append(s.commits(), s.index, s.files), "\n")
	for c := range p.kept(ctx, w.Repository, append(w.Known, s.commits()...)) {
		revisions += "^" + c + "\n"
	}
	return pump(ctx,
		func(ctx context.Context, out io.Writer) error {
			g, err := p.settings.Via.Enter(ctx)
			if err != nil {
				return err
			}
			o, err := g.Run(ctx, providers.Command{
				Args: []string{"sh", "-c", send, "workspace", string(w.ID)}, Stdin: strings.NewReader(revisions), Stdout: out,
			})
			if err == nil && o.Status != 0 {
				err = failedInside(o)
			}
			return err
		},
		func(ctx context.Context, in io.Reader) error {
			return p.git(w.Repository).Stream(ctx, in, nil, "index-pack", "--stdin", "--fix-thin", "--strict")
		})
}

// keep makes the commit of a save whose objects the repository has, verifies it, and gives it its reference.
func (p *Provider) keep(ctx context.Context, w *seen, s *state, f Facts) (Saved, error) {
	git := p.git(w.Repository)
	tree, err := p.saveTree(ctx, git, s, &f)
	if err != nil {
		return Saved{}, err
	}
	folder := saveFolder(w.Owner.Address)
	all, err := p.saves(ctx, w.Repository, folder)
	if err != nil {
		return Saved{}, err
	}
	for _, known := range all {
		if known.tree == tree && verify(ctx, git, known.Commit, known.Ref) == nil {
			known.Before = true
			return known.Saved, nil
		}
	}
	now := p.settings.Now().UTC()
	commit, err := writeObject(ctx, git, "commit", saveCommit(tree, s.commits(), w.Owner.Address.String(), now))
	if err != nil {
		return Saved{}, err
	}
	saved := Saved{Commit: commit, Facts: f, Name: now.Format(saveTime)}
	taken := func(name string) bool {
		return slices.ContainsFunc(all, func(s keptSave) bool { return s.Name == name })
	}
	for n := 2; taken(saved.Name); n++ {
		saved.Name = fmt.Sprintf("%s-%d", now.Format(saveTime), n)
	}
	saved.Ref = folder + saved.Name
	if err := verify(ctx, git, commit, saved.Ref); err != nil {
		return Saved{}, err
	}
	if _, err := git.Output(ctx, "update-ref", "-m", "vmctl: workspace save", saved.Ref, commit, strings.Repeat("0", len(commit))); err != nil {
		return Saved{}, err
	}
	return saved, nil
}

// saveTime is the form of the name of a save.
const saveTime = "20060102T150405.000Z"

// verify fails unless a repository has every object that a commit needs, whatever the reference of the commit says.
func verify(ctx context.Context, git gitx.Git, commit, ref string) error {
	_, err := git.Output(ctx, "rev-list", "--objects", "--quiet", commit, "--not", "--exclude="+ref, "--all")
	if err != nil {
		return fmt.Errorf("verify the save: %w", err)
	}
	return nil
}

func writeObject(ctx context.Context, git gitx.Git, sort, text string) (string, error) {
	out, err := git.Filter(ctx, []byte(text), "hash-object", "-t", sort, "-w", "--stdin")
	return strings.TrimSpace(string(out)), err
}

func saveCommit(tree string, parents []string, address string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, c := range parents {
		fmt.Fprintf(&b, "parent %s\n", c)
	}
	who := fmt.Sprintf("vmctl <vmctl@localhost> %d +0000", now.Unix())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\nvmctl: the work in %s\n", who, who, address)
	return b.String()
}

// saveTree writes the tree of a save, and completes the facts.
func (p *Provider) saveTree(ctx context.Context, git gitx.Git, s *state, f *Facts) (string, error) {
	files, err := listTree(ctx, git, s.files)
	if err != nil {
		return "", err
	}
	entries, intended, err := indexOf(ctx, git, s, files)
	if err != nil {
		return "", err
	}
	if f.Ignores {
		for _, name := range s.ignored {
			if e, ok := files[name]; ok {
				f.Ignored, f.IgnoredBytes = f.Ignored+1, f.IgnoredBytes+e.size
			}
		}
	}
	facts, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	var refs, stashes []string
	for _, r := range s.refs {
		refs = append(refs, r.sha+" "+r.sort+" "+r.name)
	}
	for _, t := range slices.Backward(s.stashes) {
		stashes = append(stashes, t.sha+" "+t.message)
	}
	tree := ""
	for _, blob := range []struct{ name, text string }{
		{"assumed", ended(s.assumed, "\x00")},
		{"facts", string(facts)},
		{"head", s.head + "\n" + s.headRef + "\n"},
		{"intended", ended(intended, "\x00")},
		{"refs", ended(refs, "\n")},
		{"skipped", ended(s.skipped, "\x00")},
		{"stage", ended(entries, "\x00")},
		{"stashes", ended(stashes, "\n")},
	} {
		sha, err := writeObject(ctx, git, "blob", blob.text)
		if err != nil {
			return "", err
		}
		tree += fmt.Sprintf("100644 blob %s\t%s\x00", sha, blob.name)
	}
	tree += fmt.Sprintf("040000 tree %s\tindex\x00040000 tree %s\tworktree\x00", s.index, s.files)
	out, err := git.Filter(ctx, []byte(tree), "mktree", "-z")
	return strings.TrimSpace(string(out)), err
}

// indexOf parts the entries of an index into those with content, and the names of those that are only intended to be added:
// the tree of the index lacks them.
func indexOf(ctx context.Context, git gitx.Git, s *state, files map[string]treeEntry) (entries, intended []string, err error) {
	inTree, err := listTree(ctx, git, s.index)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range s.entries {
		_, name, _ := strings.Cut(e, "\t")
		if _, ok := inTree[name]; ok {
			entries = append(entries, e)
			continue
		}
		if _, ok := files[name]; !ok {
			return nil, nil, &RefusedError{Why: fmt.Sprintf("%q in it is to be added (git add -N), and is no file any more", name), Next: []string{"there: git reset"}}
		}
		intended = append(intended, name)
	}
	return entries, intended, nil
}

type treeEntry struct{ size int64 }

// listTree returns the files in a tree, by path.
func listTree(ctx context.Context, git gitx.Git, tree string) (map[string]treeEntry, error) {
	out, err := git.Filter(ctx, nil, "ls-tree", "-r", "-l", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	all := map[string]treeEntry{}
	for _, line := range names(string(out)) {
		facts, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(facts)
		if !ok || len(fields) < 4 {
			return nil, errors.New("git ls-tree printed what is not understood")
		}
		var e treeEntry
		_, _ = fmt.Sscan(fields[3], &e.size) //nolint:errcheck // a submodule has no size
		all[name] = e
	}
	return all, nil
}
