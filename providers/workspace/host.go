package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/providers"
)

// runner runs git as a guest runs commands.
type runner struct {
	enter func() (providers.Guest, error)
}

// Run implements gitx.Runner.
func (r runner) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	g, err := r.enter()
	if err != nil {
		return gitx.Output{}, err
	}
	o, err := g.Run(ctx, providers.Command{Args: c.Args, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout})
	return gitx.Output{Status: o.Status, Stderr: o.Stderr}, err
}

// Runner returns what runs git in the guest that enter returns.
func Runner(enter func() (providers.Guest, error)) gitx.Runner { return runner{enter} }

// git returns git in a folder of this host.
func (p *Provider) git(dir string) gitx.Git { return gitx.Git{Runner: runner{p.host.Enter}, Dir: dir} }

// folder returns the absolute path of a folder of this host that a spec names.
func (p *Provider) folder(name string) (string, error) {
	if name == "~" || strings.HasPrefix(name, "~/") {
		if p.host.Home == "" {
			return "", errors.New("HOME is not set")
		}
		return filepath.Join(p.host.Home, strings.TrimPrefix(name, "~")), nil
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.Join(p.settings.Files, name), nil
}

// repository returns the git directory of the repository that a folder belongs to, absolute.
func (p *Provider) repository(ctx context.Context, name string) (string, error) {
	dir, err := p.folder(name)
	if err != nil {
		return "", fmt.Errorf("find the repository %s: %w", name, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("find the repository %s: this host has no folder %s", name, dir)
	}
	common, err := p.git(dir).Output(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", fmt.Errorf("find the repository %s: %w", dir, err)
	}
	if real, err := filepath.EvalSymlinks(common); err == nil {
		common = real
	}
	shallow, err := p.git(common).Output(ctx, "rev-parse", "--is-shallow-repository")
	if err == nil && shallow == "true" {
		return "", fmt.Errorf("the repository %s is shallow: git fetch --unshallow completes it", dir)
	}
	return common, err
}

// branch returns the commit of a branch of a repository, which is made at the repository's HEAD if it is missing and
// create says so. Nothing that is checked out changes.
func (p *Provider) branch(ctx context.Context, repository, name string, create bool) (string, error) {
	git := p.git(repository)
	if same, err := git.Output(ctx, "check-ref-format", "--branch", name); err != nil || same != name {
		return "", fmt.Errorf("%q is not a name that git accepts for a branch", name)
	}
	commit, err := git.Output(ctx, "rev-parse", "--verify", "-q", "refs/heads/"+name+"^{commit}")
	if err == nil || gitx.Status(err) < 0 {
		return commit, err
	}
	if !create {
		return "", fmt.Errorf("the repository has no branch %s: make it, or write create_branch = true", name)
	}
	commit, err = git.Output(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if err != nil {
		return "", errors.New("the repository has no commit yet: make the first one")
	}
	_, err = git.Output(ctx, "update-ref", "-m", "vmctl: workspace", "refs/heads/"+name, commit, strings.Repeat("0", len(commit)))
	return commit, err
}

// identity returns the name and the address that the repository's user commits with; "": not configured.
func (p *Provider) identity(ctx context.Context, repository string) (name, email string) {
	read := func(key string) string {
		value, err := p.git(repository).Output(ctx, "config", "--get", key)
		if err != nil {
			return ""
		}
		return value
	}
	return read("user.name"), read("user.email")
}

// compare finds the commits of workspaces that their repositories do not keep under any reference. Those of a repository that
// cannot be read count as missing, as do those of a workspace whose record is not followed.
func (p *Provider) compare(ctx context.Context, all []*seen) {
	wanted := map[string][]string{}
	for _, w := range all {
		if w.Unsealed != "" {
			continue
		}
		wanted[w.Repository] = append(wanted[w.Repository], w.commits()...)
	}
	kept := map[string]map[string]bool{}
	for repository, commits := range wanted {
		kept[repository] = p.kept(ctx, repository, commits)
	}
	for _, w := range all {
		w.Unfetched = slices.DeleteFunc(w.commits(), func(c string) bool { return kept[w.Repository][c] })
		if len(w.Unfetched) > 0 && w.Unsealed == "" && p.isGone(ctx, w.Repository) {
			w.Unread = append(w.Unread, "the repository "+w.Repository+" cannot be read")
		}
	}
}

func (p *Provider) isGone(ctx context.Context, repository string) bool {
	_, err := p.git(repository).Output(ctx, "rev-parse", "--git-dir")
	return err != nil
}

// kept returns those of some commits that a repository has under a reference.
func (p *Provider) kept(ctx context.Context, repository string, commits []string) map[string]bool {
	kept := map[string]bool{}
	if len(commits) == 0 {
		return kept
	}
	git := p.git(repository)
	out, err := git.Filter(ctx, []byte(strings.Join(commits, "\n")+"\n"), "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return kept
	}
	var there []string
	for line := range strings.Lines(string(out)) {
		if sha, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind == "commit" || kind == "tag" {
			there = append(there, sha)
			kept[sha] = true
		}
	}
	if len(there) == 0 {
		return kept
	}
	out, err = git.Filter(ctx, []byte(strings.Join(there, "\n")+"\n"), append([]string{"rev-list", "--stdin", "--not"}, lasting()...)...)
	if err != nil {
		return map[string]bool{}
	}
	for line := range strings.Lines(string(out)) {
		delete(kept, strings.TrimSpace(line))
	}
	return kept
}

// lasting returns the revisions of git rev-list for all references of a repository, without those of one worktree, such as
// its HEAD: they go with it.
func lasting() []string {
	return []string{"--exclude=refs/bisect/*", "--exclude=refs/worktree/*", "--exclude=refs/rewritten/*", "--glob=*"}
}

// pump runs two programs, of which the second one reads what the first one prints.
func pump(ctx context.Context, from func(context.Context, io.Writer) error, to func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := from(ctx, w)
		w.CloseWithError(err)
		sent <- err
	}()
	err := to(ctx, r)
	r.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if err != nil {
		cancel(err)
	}
	first := <-sent
	if first != nil && (err == nil || !errors.Is(first, io.ErrClosedPipe)) {
		return errors.Join(first, err)
	}
	return err
}
