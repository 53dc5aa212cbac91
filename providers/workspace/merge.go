package workspace

import (
	"context"
	"fmt"
	"strings"

	"vmctl/internal/gitx"
)

// Merge describes the merge of a branch into the branch that is checked out.
type Merge struct {
	Repo    string // as a spec names it
	Branch  string
	Title   string // first line of the message of a new commit; the branch and its commits follow
	Squash  bool   // one commit with the changes of all, in place of a merge
	Trusted string // the commit whose changes to specs were reviewed; "": none was
}

// Merged tells how a merge ended.
type Merged struct {
	Branch string // that was checked out
	From   string // its commit before
	To     string // its commit now; From: it had all already
}

// ConflictError reports that two branches changed the same: nothing was merged.
type ConflictError struct {
	Into  string // the branch that is checked out
	Files []string
}

// Error names the branch.
func (e *ConflictError) Error() string {
	return "it conflicts with branch " + e.Into + " of this host; nothing was changed"
}

// SpecError reports that commits change specs, and that nobody said to trust them.
type SpecError struct {
	Files []string
	Head  string // the commit to trust
	Said  string // the commit that was trusted; "": none
}

// Error says how many files there are.
func (e *SpecError) Error() string {
	if e.Said != "" && e.Said != e.Head {
		return fmt.Sprintf("--trust-spec names commit %s, but the branch is at %s; nothing was changed", e.Said, e.Head)
	}
	return "its commits change files that vmctl acts on; nothing was changed"
}

// Merge merges a branch into the branch that is checked out, whole or not at all. It is refused with a *RefusedError, a
// *ConflictError or a *SpecError, and then nothing has changed.
func (r Repositories) Merge(ctx context.Context, m Merge) (Merged, error) {
	c, err := r.Checkout(ctx, m.Repo)
	if err != nil {
		return Merged{}, err
	}
	done := Merged{Branch: c.Branch, From: c.Head, To: c.Head}
	if err := r.mergeable(ctx, c, m.Branch); err != nil {
		return done, err
	}
	theirs, err := r.Tip(ctx, c.Repository, m.Branch)
	if err != nil {
		return done, err
	}
	if theirs == "" {
		return done, &RefusedError{Why: "this host has no branch " + m.Branch}
	}
	git := r.provider().git(c.Dir)
	if has, err := git.IsAncestor(ctx, theirs, c.Head); err != nil || has {
		return done, err
	}
	tree, conflicts, err := git.MergeTree(ctx, c.Head, theirs)
	switch {
	case err != nil:
		return done, fmt.Errorf("merge branch %s: %w", m.Branch, err)
	case len(conflicts) > 0:
		return done, &ConflictError{Into: c.Branch, Files: conflicts}
	}
	if m.Trusted != "" && m.Trusted != theirs {
		return done, &SpecError{Head: theirs, Said: m.Trusted}
	}
	if err := r.provider().gate(ctx, git, c.Head, theirs, tree, m.Trusted); err != nil {
		return done, err
	}
	commit, err := m.commit(ctx, git, c, theirs, tree)
	if err != nil {
		return done, fmt.Errorf("commit the merge of %s: %w", m.Branch, err)
	}
	if err := forwardCheckout(ctx, git, c, commit); err != nil {
		return done, err
	}
	done.To = commit
	return done, nil
}

// mergeable fails unless something can be merged into a checkout.
func (r Repositories) mergeable(ctx context.Context, c Checkout, branch string) error {
	switch {
	case c.Dir == "":
		return &RefusedError{Why: "the repository " + c.Repository + " is bare: no branch is checked out", Next: []string{"make a checkout (git worktree add), and name its folder as repo"}}
	case c.Branch == "":
		return &RefusedError{Why: "no branch is checked out in " + c.Dir, Next: []string{"check out the branch that is to get the commits: git checkout BRANCH"}}
	case c.Branch == branch:
		return &RefusedError{Why: "branch " + branch + " is itself checked out in " + c.Dir, Next: []string{"check out the branch that is to get the commits: git checkout BRANCH"}}
	case c.Head == "":
		return &RefusedError{Why: "branch " + c.Branch + " of " + c.Dir + " has no commit yet", Next: []string{"make the first one"}}
	}
	begun, err := r.provider().begun(ctx, c.Dir)
	if err != nil {
		return err
	}
	if begun != "" {
		return &RefusedError{Why: begun + " was begun in " + c.Dir, Next: []string{"complete or abort it, then repeat the command"}}
	}
	return nil
}

// commit returns the commit to which the checkout is to move.
func (m Merge) commit(ctx context.Context, git gitx.Git, c Checkout, theirs, tree string) (string, error) {
	if !m.Squash {
		forward, err := git.IsAncestor(ctx, c.Head, theirs)
		if err != nil || forward {
			return theirs, err
		}
	}
	message := m.Title + "\n"
	args := []string{"commit-tree", tree, "-p", c.Head}
	if m.Squash {
		subjects, err := git.Output(ctx, "log", "--no-color", "--no-show-signature", "--no-mailmap", "--no-merges", "--reverse", "--format=* %s", c.Head+".."+theirs, "--")
		if err != nil {
			return "", err
		}
		message += "\n" + subjects + "\n"
	} else {
		args = append(args, "-p", theirs)
	}
	out, err := git.Filter(ctx, []byte(message), append(args, "-F", "-")...)
	return strings.TrimSpace(string(out)), err
}

// forwardCheckout moves a checkout and its branch to a later commit. Nothing changes if a file would be lost, be it
// ignored or not.
func forwardCheckout(ctx context.Context, git gitx.Git, c Checkout, commit string) error {
	_, err := git.Output(ctx, "merge", "-q", "--ff-only", "--no-overwrite-ignore", "--no-squash", "--no-autostash", commit)
	if gitx.Status(err) < 1 {
		return err
	}
	now, headErr := git.Output(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if headErr != nil || now != c.Head {
		return fmt.Errorf("move branch %s to %s: somebody else changed what is checked out in %s: %w", c.Branch, commit, c.Dir, err)
	}
	refused := &RefusedError{
		Why:  "the merge would overwrite files of " + c.Dir + " that are in no commit; nothing was changed",
		Next: []string{"commit, stash or move these files, then repeat the command"},
	}
	for line := range strings.Lines(err.Error()) {
		if name, ok := strings.CutPrefix(line, "\t"); ok {
			refused.Seen = append(refused.Seen, strings.TrimSpace(name))
		}
	}
	if len(refused.Seen) == 0 {
		return fmt.Errorf("move branch %s to %s: %w", c.Branch, commit, err)
	}
	return refused
}
