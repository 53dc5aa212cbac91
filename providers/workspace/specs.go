package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/gitx"
	"vmctl/providers"
	"vmctl/spec"
)

// gate fails with a *SpecError if the commits from ours to theirs, or the tree to which a checkout is to move, change files
// that vmctl acts on, and trusted is not theirs. Whatever moves a checkout of this host calls it first. ours "": there is none.
func (p *Provider) gate(ctx context.Context, git gitx.Git, ours, theirs, tree, trusted string) error {
	if trusted == theirs {
		return nil
	}
	in, err := p.inputs(ctx, git)
	var found []string
	if err == nil {
		found, err = in.changed(ctx, git, ours, theirs, tree)
	}
	switch {
	case err != nil:
		return fmt.Errorf("see which files the commits up to %s change: %w", theirs, err)
	case len(found) > 0:
		return &SpecError{Files: found, Head: theirs, Said: trusted}
	}
	return nil
}

// untrusted returns the reason why the commits of a workspace, as far as this host has them, would not come into the checkout
// of their branch; nil: there is none, or it is not known yet.
func (p *Provider) untrusted(ctx context.Context, w *seen, ours string) *SpecError {
	where, err := p.checkedOut(ctx, w.Repository, w.Branch)
	if err != nil || where == "" {
		return nil // apply tells it
	}
	var changed *SpecError
	errors.As(p.gate(ctx, p.git(where), ours, w.Tip, w.Tip, ""), &changed)
	return changed
}

// next returns what can be done about changes that nobody has said to trust.
func (e *SpecError) next(a spec.Address) []providers.Advice {
	return append(providers.SayVmctl("read the changes: ", "workspace", "diff", a.String()),
		providers.SayVmctl("then fetch them: ", "workspace", "fetch", a.String(), "--trust-spec="+e.Head)...)
}

// inputs holds the paths in a repository of the files, and of the folders, that the spec reads. Some systems do not tell capital
// letters from small ones: they are small.
type inputs []string

// inputs returns the files of the repository that the spec reads. Checkouts of one repository have the same paths: a file that
// the spec reads from one of them counts in all.
func (p *Provider) inputs(ctx context.Context, git gitx.Git) (inputs, error) {
	out, err := git.Output(ctx, "worktree", "list", "--porcelain")
	if err != nil {
		return nil, err
	}
	var all inputs
	for line := range strings.SplitSeq(out, "\n") {
		top, is := strings.CutPrefix(line, "worktree ")
		if !is {
			continue
		}
		for _, read := range p.settings.Read {
			for _, file := range hops(read) {
				all = append(all, below(top, file)...)
				all = append(all, below(whole(top), file)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// below returns the path of a file from a folder that it is in, as inputs has it; nil: it is not in it.
func below(folder, file string) inputs {
	name, err := filepath.Rel(folder, file)
	if err != nil || !filepath.IsLocal(name) {
		return nil
	}
	return inputs{strings.ToLower(filepath.ToSlash(name))}
}

// whole returns a path without symbolic links, as far as it exists.
func whole(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(whole(dir), filepath.Base(path))
	}
	return path
}

// hops returns the paths that lead to a file: as it is written, then its own in a folder without symbolic links, then what each
// link says.
func hops(path string) []string {
	const most = 40
	all := []string{path}
	for range most {
		path = filepath.Join(whole(filepath.Dir(path)), filepath.Base(path))
		all = append(all, path)
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return all
}

// has reports whether vmctl acts on a file of the repository: on one that the spec reads, on what is in a folder that it reads,
// or on a link or folder on the way there.
func (in inputs) has(name string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(path.Base(name), spec.Suffix) {
		return true
	}
	return slices.ContainsFunc(in, func(read string) bool {
		return read == "." || read == name || strings.HasPrefix(name, read+"/") || strings.HasPrefix(read, name+"/")
	})
}

// changed lists the files which vmctl acts on that the commits between two commits change, or that differ in the tree of the
// merge, sorted. One that a commit changes and another one changes back is in the list: it was there to be applied.
func (in inputs) changed(ctx context.Context, git gitx.Git, ours, theirs, tree string) ([]string, error) {
	log := []string{"log", "-z", "-c", "--root", "--format=", "--name-only", "--no-renames", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none"}
	diff := []string{"diff-tree", "-z", "-r", "--name-only", "--no-renames", "--ignore-submodules=none", ours, tree, "--"}
	if ours == "" {
		log = append(log, theirs, "--")
		diff = []string{"ls-tree", "-z", "-r", "--full-tree", "--name-only", tree}
	} else {
		log = append(log, ours+".."+theirs, "--")
	}
	found := map[string]bool{}
	for _, args := range [][]string{log, diff} {
		out, err := git.Filter(ctx, nil, args...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			if name = strings.TrimPrefix(name, "\n"); name != "" && in.has(name) {
				found[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
