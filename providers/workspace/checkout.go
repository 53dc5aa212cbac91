package workspace

import (
	"context"
	"fmt"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/providers"
)

// Repositories finds the repositories of this host that specs name. It needs no place of workspaces: nothing that a guest
// wrote down leads it anywhere.
type Repositories struct {
	Host  Host
	Files string   // the spec's folder, against which relative paths are read
	Read  []string // the absolute paths of the files that the spec reads, and of the folders of its modules
}

func (r Repositories) provider() *Provider {
	return &Provider{host: r.Host, settings: providers.Settings{Files: r.Files, Read: r.Read}}
}

// Checkout is the checkout of a repository on this host: the one that a spec's repo is in.
type Checkout struct {
	Repository string // the git directory, absolute; equal for all checkouts of a repository
	Dir        string // its top folder; "": the repository is bare
	Branch     string // that is checked out; "": none is
	Head       string // the commit; "": none yet
}

// Checkout finds the checkout that a folder is in, as a spec names the folder.
func (r Repositories) Checkout(ctx context.Context, repo string) (Checkout, error) {
	p := r.provider()
	c := Checkout{}
	var err error
	if c.Repository, err = p.repository(ctx, repo); err != nil {
		return c, err
	}
	dir, err := p.folder(repo)
	if err != nil {
		return c, err
	}
	git := p.git(dir)
	bare, err := git.Output(ctx, "rev-parse", "--is-inside-work-tree")
	if err != nil {
		return c, fmt.Errorf("find the checkout of %s: %w", dir, err)
	}
	if bare == "true" {
		if c.Dir, err = git.Output(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel"); err != nil {
			return c, fmt.Errorf("find the checkout of %s: %w", dir, err)
		}
	}
	ref, err := git.Output(ctx, "symbolic-ref", "-q", "HEAD")
	if err != nil && gitx.Status(err) != 1 {
		return c, fmt.Errorf("find what is checked out in %s: %w", dir, err)
	}
	c.Branch = strings.TrimPrefix(ref, "refs/heads/")
	c.Head, err = git.Output(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if err != nil && gitx.Status(err) < 0 {
		return c, fmt.Errorf("find what is checked out in %s: %w", dir, err)
	}
	return c, nil
}

// Tip returns the commit of a branch of a repository; "": there is no such branch.
func (r Repositories) Tip(ctx context.Context, repository, branch string) (string, error) {
	return r.provider().tip(ctx, repository, branch)
}

// Beyond returns those of some commits that are not in the history of a commit of a repository, in their order.
func (r Repositories) Beyond(ctx context.Context, repo, tip string, commits []string) ([]string, error) {
	c, err := r.Checkout(ctx, repo)
	if err != nil {
		return nil, err
	}
	var beyond []string
	for _, commit := range commits {
		has, err := r.provider().git(c.Repository).IsAncestor(ctx, commit, tip)
		if err != nil && gitx.Status(err) < 0 {
			return nil, err
		}
		if !has { // one that the repository does not know is beyond, too
			beyond = append(beyond, commit)
		}
	}
	return beyond, nil
}
