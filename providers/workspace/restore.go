package workspace

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// Restore implements Saver.
func (p *Provider) Restore(ctx context.Context, id providers.ID, o RestoreOptions) (Saved, error) {
	w, err := p.found(ctx, id)
	if err != nil {
		return Saved{}, err
	}
	if w.Owner == nil {
		return Saved{}, &RefusedError{Why: "it bears no mark of a project"}
	}
	w, marked := w.as(o.As), w.Owner.Address
	saved, err := p.find(ctx, w, o.Name, append([]spec.Address{w.Owner.Address, marked}, o.Was...))
	if err != nil {
		return Saved{}, err
	}
	if back, err := p.isBack(ctx, w, saved); err != nil || back {
		return saved.Saved, err
	}
	saved.Aside, err = p.restore(ctx, w, saved)
	return saved.Saved, err
}

// isBack reports whether a workspace with work is as it was saved.
func (p *Provider) isBack(ctx context.Context, w *seen, saved keptSave) (bool, error) {
	if w.Restoring != "" || w.Owner == nil || len(w.dirt()) == 0 {
		return false, nil
	}
	force := ""
	if saved.Ignores {
		force = withIgnored
	}
	s, err := p.snapshot(ctx, w, force)
	if err == nil {
		err = p.receiveState(ctx, w, s)
	}
	if err != nil {
		return false, err
	}
	f := p.facts(w, s, SaveOptions{Ignored: saved.Ignores})
	tree, err := p.saveTree(ctx, p.git(w.Repository), s, &f)
	return tree == saved.tree, err
}

// restore brings a save back into a workspace. If that was begun before, it saves what is there now, and goes on; aside is the
// reference of that save.
func (p *Provider) restore(ctx context.Context, w *seen, saved keptSave) (aside string, err error) {
	s, err := p.snapshot(ctx, w, "")
	if err != nil {
		return "", err
	}
	if w, err = p.found(ctx, w.ID); err != nil { // as it was after the snapshot
		return "", err
	}
	again := ""
	if w.Restoring == saved.Commit {
		again = "again"
		if aside, err = p.setAside(ctx, w, saved); err != nil {
			return "", err
		}
	}
	if err := p.restorable(ctx, w, s, saved); err != nil {
		return "", err
	}
	if !p.onHost() {
		revisions := saved.Commit + "\n"
		for c := range p.kept(ctx, w.Repository, s.commits()) {
			revisions += "^" + c + "\n"
		}
		err := pump(ctx,
			func(ctx context.Context, out io.Writer) error {
				return p.git(w.Repository).Stream(ctx, strings.NewReader(revisions), out, "pack-objects", "--revs", "--stdout", "--thin", "-q")
			},
			func(ctx context.Context, in io.Reader) error { return p.feed(ctx, in, take, string(w.ID)) })
		if err != nil {
			return "", fmt.Errorf("send the save: %w", err)
		}
	}
	_, err = p.ask(ctx, putBack, string(w.ID), w.Path, p.tree(), "", s.digest, saved.Commit, w.Branch, again)
	return aside, err
}

// setAside saves what is in a workspace whose restore was cut short: somebody may have worked there since.
func (p *Provider) setAside(ctx context.Context, w *seen, saved keptSave) (string, error) {
	if len(w.dirt())+len(w.unread()) == 0 && !saved.Ignores {
		return "", nil
	}
	kept, err := p.Save(ctx, w.ID, SaveOptions{Ignored: saved.Ignores, As: w.Owner.Address})
	return kept.Ref, err
}

// find returns a save of a workspace of which the repository has every object. of are the addresses under which its saves are.
func (p *Provider) find(ctx context.Context, w *seen, name string, of []spec.Address) (keptSave, error) {
	folders := saveFolders(of)
	if strings.HasPrefix(name, saveRoot) {
		folders = []string{name[:strings.LastIndex(name, "/")+1]}
	}
	all, err := p.saves(ctx, w.Repository, folders...)
	if err != nil {
		return keptSave{}, err
	}
	own := saveFolder(w.Owner.Address)
	i := slices.IndexFunc(all, func(s keptSave) bool {
		if name != "" {
			return s.Name == name || s.Ref == name
		}
		// Another workspace may have had an earlier address of this one since.
		mayBeOurs := strings.HasPrefix(s.Ref, own) || s.Branch == w.Branch
		return s.Commit == w.Restoring || w.Restoring == "" && mayBeOurs
	})
	if i < 0 {
		why := "it has no save " + name
		if name == "" {
			why = "it has no save"
		}
		return keptSave{}, &RefusedError{Why: why, Next: []string{"list them: vmctl workspace saves " + w.Owner.Address.String()}}
	}
	return all[i], verify(ctx, p.git(w.Repository), all[i].Commit, all[i].Ref)
}

// restorable refuses to restore a save over work, or over files that git ignores.
func (p *Provider) restorable(ctx context.Context, w *seen, s *state, saved keptSave) error {
	again := w.Restoring == saved.Commit // what is there is in a save of its own
	if seen := w.work(s); len(seen) > 0 && !again {
		return &RefusedError{Why: "it has work of its own", Seen: seen, Next: []string{"save it first, destroy the workspace and apply, then restore both"}}
	}
	if w.Branch != saved.Branch {
		return &RefusedError{Why: fmt.Sprintf("it is a workspace of branch %s, and the save is one of branch %s", w.Branch, saved.Branch)}
	}
	git := p.git(w.Repository)
	files, err := listTree(ctx, git, saved.Commit+":worktree")
	if err != nil {
		return err
	}
	if over := overwritten(s.ignored, files); len(over) > 0 && !again {
		return &RefusedError{Why: "files that git ignores would be overwritten", Seen: over, Next: []string{"move them away there, then repeat the command"}}
	}
	if !p.onHost() {
		return nil
	}
	text, err := git.Output(ctx, "cat-file", "blob", saved.Commit+":head")
	if err != nil {
		return err
	}
	_, ref, _ := strings.Cut(text, "\n")
	branch := strings.TrimPrefix(ref, "refs/heads/")
	if ref == "" || branch == w.Branch {
		return nil
	}
	where, err := p.checkedOut(ctx, w.Repository, branch)
	if own, linked := filepath.EvalSymlinks(w.Path); linked == nil && where == own { // an earlier restore came as far
		return nil
	}
	if err == nil && where != "" {
		err = &RefusedError{Why: fmt.Sprintf("branch %s, which the save had checked out, is checked out in %s", branch, where)}
	}
	return err
}

// work names the work in a workspace, marks of files among it, and what of it could not be read.
func (w *seen) work(s *state) []string {
	var all []string
	for _, d := range w.dirt() {
		all = append(all, d.String())
	}
	for _, name := range slices.Concat(s.assumed, s.skipped) {
		all = append(all, fmt.Sprintf("marked assume-unchanged or skip-worktree: %q", name))
	}
	return append(all, w.Unread...)
}

// overwritten returns the files among some that stand where other files, or their folders, are to be.
func overwritten(there []string, files map[string]treeEntry) []string {
	folders := map[string]bool{}
	for name := range files {
		for i, c := range []byte(name) {
			if c == '/' {
				folders[name[:i]] = true
			}
		}
	}
	var over []string
	for _, name := range there {
		plain := strings.TrimSuffix(name, "/")
		_, hit := files[plain]
		hit = hit || folders[plain]
		for i, c := range []byte(plain) {
			if _, file := files[plain[:i]]; c == '/' && file {
				hit = true
			}
		}
		if hit {
			over = append(over, fmt.Sprintf("%q", name))
		}
	}
	return over
}
