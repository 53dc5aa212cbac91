package workspace

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/internal/shellword"
	"vmctl/providers"
)

// Exchanger sends and receives the commits of workspaces.
type Exchanger interface {
	// Fetch brings the branch of a workspace to the repository of this host, and returns the commit that it has
	// there now. A branch that is checked out moves only if nothing is changed there; no branch loses a commit. Where it is
	// checked out and its commits change files that the spec reads, they must be those up to the commit trusted, else the
	// error is a *SpecError.
	Fetch(ctx context.Context, id providers.ID, trusted string) (Moved, error)
	// Push brings the commits of the repository's branch to a workspace in which nothing is changed.
	Push(ctx context.Context, id providers.ID) (Moved, error)
}

var _ Exchanger = (*Provider)(nil)

// Moved tells how a branch moved. From and To are equal if it had nothing to get.
type Moved struct{ Branch, From, To string }

// RefusedError reports that a branch cannot move as things are: nothing was changed.
type RefusedError struct {
	Why  string
	Seen []string
	Next []string
}

// Error gives the reason.
func (e *RefusedError) Error() string { return e.Why }

func (p *Provider) at(ctx context.Context, id providers.ID) (*seen, error) {
	w, err := p.found(ctx, id)
	if err == nil && w.Half != "" {
		return nil, fmt.Errorf("it is only half there (%s): vmctl apply completes it", w.Half)
	}
	return w, err
}

// found looks at a workspace into which a save may have come back in part.
func (p *Provider) found(ctx context.Context, id providers.ID) (*seen, error) {
	all, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(w *seen) bool { return w.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%s has no such workspace", p.settings.Via.Address)
	}
	if err := all[i].refuseUnsealed(); err != nil {
		return nil, err
	}
	if all[i].Half != "" && all[i].Half != partlyBack {
		return nil, fmt.Errorf("it is only half there (%s): vmctl apply completes it", all[i].Half)
	}
	return all[i], nil
}

// tip returns the commit of a branch of a repository; "": there is no such branch.
func (p *Provider) tip(ctx context.Context, repository, branch string) (string, error) {
	commit, err := p.git(repository).Output(ctx, "rev-parse", "--verify", "-q", "refs/heads/"+branch+"^{commit}")
	if gitx.Status(err) > 0 {
		return "", nil
	}
	return commit, err
}

// Fetch implements Exchanger.
func (p *Provider) Fetch(ctx context.Context, id providers.ID, trusted string) (Moved, error) {
	w, err := p.at(ctx, id)
	if err != nil {
		return Moved{}, err
	}
	git := p.git(w.Repository)
	before, err := p.tip(ctx, w.Repository, w.Branch)
	m := Moved{Branch: w.Branch, From: before, To: before}
	if err != nil || p.onHost() { // a worktree shares the branch
		return m, err
	}
	out, err := p.inside(ctx, have, nil, string(id), w.Branch)
	if err != nil {
		return m, err
	}
	theirs := strings.TrimSpace(string(out))
	if !gitx.IsObjectName(theirs) {
		return m, fmt.Errorf("the workspace names %.80q as the commit of branch %s, which is no name of a commit", theirs, w.Branch)
	}
	if theirs == before {
		return m, nil
	}
	if err := p.receive(ctx, w, theirs); err != nil {
		return m, err
	}
	if before != "" {
		if _, err := git.Output(ctx, "merge-base", "--is-ancestor", before, theirs); err != nil {
			if gitx.Status(err) != 1 {
				return m, err
			}
			if _, err := git.Output(ctx, "merge-base", "--is-ancestor", theirs, before); err == nil {
				return m, nil // this host is ahead
			}
			return m, &RefusedError{
				Why: fmt.Sprintf("branch %s of this host has commits that the workspace lacks, and the other way round", w.Branch),
				Next: []string{
					"the workspace's commit is in this host's repository now: in a checkout of the branch, git merge " + theirs,
					"then: vmctl workspace push",
				},
			}
		}
	}
	if err := p.forward(ctx, w, before, theirs, trusted); err != nil {
		return m, err
	}
	m.To = theirs
	_, err = p.inside(ctx, sent, nil, string(id), w.Branch, theirs)
	return m, err
}

// receive brings a commit and all that it needs to the repository of this host, and verifies that nothing is missing.
func (p *Provider) receive(ctx context.Context, w *seen, commit string) error {
	if p.kept(ctx, w.Repository, []string{commit})[commit] {
		return nil
	}
	git := p.git(w.Repository)
	revisions := commit + "\n"
	for _, c := range w.Known {
		if p.kept(ctx, w.Repository, []string{c})[c] {
			revisions += "^" + c + "\n"
		}
	}
	err := pump(ctx,
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
			return git.Stream(ctx, in, nil, "index-pack", "--stdin", "--fix-thin", "--strict")
		})
	if err != nil {
		return fmt.Errorf("receive commits: %w", err)
	}
	if _, err := git.Output(ctx, "rev-list", "--objects", "--quiet", commit, "--not", "--all"); err != nil {
		return fmt.Errorf("verify the received commits: %w", err)
	}
	return nil
}

// forward moves a branch of a repository to a later commit. Where it is checked out, its files follow if nothing is
// changed there, and if no file that the spec reads changes before the commit trusted.
func (p *Provider) forward(ctx context.Context, w *seen, before, after, trusted string) error {
	git := p.git(w.Repository)
	where, err := p.checkedOut(ctx, w.Repository, w.Branch)
	if err != nil {
		return err
	}
	if where == "" {
		if before == "" {
			before = strings.Repeat("0", len(after))
		}
		_, err := git.Output(ctx, "update-ref", "-m", "vmctl: workspace fetch", "refs/heads/"+w.Branch, after, before)
		return err
	}
	tree := p.git(where)
	changed, err := tree.Output(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changed != "" {
		return &RefusedError{
			Why: fmt.Sprintf("branch %s is checked out in %s, where files are changed", w.Branch, where), Seen: strings.Split(changed, "\n"),
			Next: []string{"commit or stash these changes, then repeat the command"},
		}
	}
	if err := p.gate(ctx, tree, before, after, after, trusted); err != nil {
		return err
	}
	_, err = tree.Output(ctx, "merge", "-q", "--ff-only", "--no-overwrite-ignore", "--no-squash", "--no-autostash", after)
	return err
}

// checkedOut returns the folder in which a branch of a repository is checked out; "": nowhere.
func (p *Provider) checkedOut(ctx context.Context, repository, branch string) (string, error) {
	p.trees.Lock()
	out, err := p.git(repository).Output(ctx, "worktree", "list", "--porcelain")
	p.trees.Unlock()
	if err != nil {
		return "", err
	}
	folder := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if path, ok := strings.CutPrefix(line, "worktree "); ok {
			folder = path
		}
		if line == "branch refs/heads/"+branch {
			return filepath.Clean(folder), nil
		}
	}
	return "", nil
}

// argument returns the address of a workspace as an argument of a command, with the blank before it; "": it has none.
func (w *seen) argument() string {
	if w.Owner == nil {
		return ""
	}
	return " " + shellword.Quote(w.Owner.Address.String())
}

// Push implements Exchanger.
func (p *Provider) Push(ctx context.Context, id providers.ID) (Moved, error) {
	w, err := p.at(ctx, id)
	if err != nil {
		return Moved{}, err
	}
	ours, err := p.tip(ctx, w.Repository, w.Branch)
	m := Moved{Branch: w.Branch, From: ours, To: ours}
	if err != nil || p.onHost() {
		return m, err
	}
	if ours == "" {
		return m, &RefusedError{Why: "this host has no branch " + w.Branch + " any more", Next: []string{"to bring the workspace's branch to this host: vmctl workspace fetch" + w.argument()}}
	}
	out, err := p.inside(ctx, have, nil, string(id), w.Branch)
	if err != nil {
		return m, err
	}
	m.From = strings.TrimSpace(string(out))
	if m.From == ours {
		return m, nil
	}
	if len(w.Staged)+len(w.Unstaged) > 0 {
		return m, &RefusedError{
			Why: "files are changed in the workspace", Seen: slices.Concat(w.Staged, w.Unstaged),
			Next: []string{"commit or stash them there, then repeat the command"},
		}
	}
	revisions := ours + "\n"
	for c := range p.kept(ctx, w.Repository, w.commits()) {
		revisions += "^" + c + "\n"
	}
	err = pump(ctx,
		func(ctx context.Context, out io.Writer) error {
			return p.git(w.Repository).Stream(ctx, strings.NewReader(revisions), out, "pack-objects", "--revs", "--stdout", "--thin", "-q")
		},
		func(ctx context.Context, in io.Reader) error { return p.feed(ctx, in, take, string(id)) })
	if err != nil {
		return m, fmt.Errorf("send commits: %w", err)
	}
	if _, err := p.inside(ctx, forward, nil, string(id), w.Path, w.Branch, ours); err != nil {
		return m, &RefusedError{
			Why: "the workspace did not take the commits: " + err.Error(), Next: []string{"it has commits of its own: vmctl workspace fetch" + w.argument() + ", and merge on this host"},
		}
	}
	m.To = ours
	return m, nil
}
