package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"vmctl/internal/gitx"
)

// Scope is the part of its workspace that a job sees.
type Scope string

// The scopes.
const (
	WorkingTree Scope = "working-tree" // what git tracks as it is on the disk, and what is neither tracked nor ignored
	Staged      Scope = "staged"       // the files of the index that differ from HEAD, as they are staged
	BranchDiff  Scope = "branch-diff"  // the files that the commits since the base changed, as they are in HEAD
	Head        Scope = "head"         // all files of HEAD
)

// Containment says where a job may write.
type Containment string

// The containments.
const (
	Uncontained Containment = "none"     // in its workspace
	InCopy      Containment = "worktree" // in a copy of its workspace, which is gone afterwards
)

// CheckContainment fails unless a job may have a containment and a scope together.
func CheckContainment(containment Containment, scope Scope) error {
	scopes := []Scope{WorkingTree, Staged, BranchDiff, Head}
	switch {
	case containment != Uncontained && containment != InCopy:
		return fmt.Errorf("there is no containment %q: it is %s or %s", containment, Uncontained, InCopy)
	case !slices.Contains(scopes, scope):
		return fmt.Errorf("there is no scope %q: the scopes are %s", scope, joined(scopes))
	case scope != WorkingTree && containment != InCopy:
		return fmt.Errorf("the scope %s needs the containment %s: without a copy, a job sees its whole workspace", scope, InCopy)
	}
	return nil
}

// scopeTries is the number of times that git is asked for the files of a scope.
const scopeTries = 3

// The modes of git.
const (
	modeLink    = "120000"
	modeProgram = "100755"
)

// scopeFile is one file of a scope.
type scopeFile struct {
	path   string // under the top, with slashes
	mode   string // of git; "": as on the disk
	object string // of git; "": the file on the disk
}

// scopeFiles returns the files of a scope, each once and sorted. Where git cannot say, it fails: nobody guesses what is ignored.
// base is the commit that branch-diff compares with.
func scopeFiles(ctx context.Context, git gitx.Git, scope Scope, base string) (files []scopeFile, err error) {
	for range scopeTries {
		if files, err = listScope(ctx, git, scope, base); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the files of the scope %s: %w", scope, err)
	}
	slices.SortFunc(files, func(a, b scopeFile) int { return strings.Compare(a.path, b.path) })
	return slices.CompactFunc(files, func(a, b scopeFile) bool { return a.path == b.path }), nil
}

func listScope(ctx context.Context, git gitx.Git, scope Scope, base string) ([]scopeFile, error) {
	raw := []string{"--raw", "-z", "--no-renames", "--no-abbrev", "--diff-filter=d"}
	switch scope {
	case WorkingTree:
		out, err := git.Filter(ctx, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
		if err != nil {
			return nil, err
		}
		var files []scopeFile
		for name := range strings.SplitSeq(string(out), "\x00") {
			if name != "" && !strings.HasSuffix(name, "/") { // a repository of its own
				files = append(files, scopeFile{path: name})
			}
		}
		return files, nil
	case Staged:
		head, err := headOrEmpty(ctx, git)
		if err != nil {
			return nil, err
		}
		return rawFiles(git.Filter(ctx, nil, append(append([]string{"diff-index", "--cached"}, raw...), head)...))
	case BranchDiff:
		if base == "" {
			return nil, errors.New("the commit that the branch began at is not known")
		}
		from, err := git.Output(ctx, "merge-base", base, "HEAD")
		if err != nil {
			return nil, err
		}
		return rawFiles(git.Filter(ctx, nil, append(append([]string{"diff-tree", "-r"}, raw...), from, "HEAD")...))
	case Head:
		empty, err := emptyTree(ctx, git)
		if err != nil {
			return nil, err
		}
		return rawFiles(git.Filter(ctx, nil, append(append([]string{"diff-tree", "-r"}, raw...), empty, "HEAD")...))
	default:
		panic("job: scope " + scope)
	}
}

// headOrEmpty returns the commit of a repository, or the empty tree if it has none yet.
func headOrEmpty(ctx context.Context, git gitx.Git) (string, error) {
	head, err := git.Output(ctx, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if gitx.Status(err) == 1 {
		return emptyTree(ctx, git)
	}
	return head, err
}

func emptyTree(ctx context.Context, git gitx.Git) (string, error) {
	out, err := git.Filter(ctx, []byte{}, "hash-object", "-t", "tree", "--stdin")
	return strings.TrimSpace(string(out)), err
}

// rawFiles reads the output of git diff --raw -z --no-abbrev. Submodules have no files here, and are left out.
func rawFiles(out []byte, err error) (files []scopeFile, _ error) {
	if err != nil {
		return nil, err
	}
	all, err := rawChanges(out)
	for _, c := range all {
		switch {
		case c.status == "U":
			return nil, fmt.Errorf("%s has a conflict that is not resolved", c.path)
		case c.mode != "160000":
			files = append(files, scopeFile{path: c.path, mode: c.mode, object: c.object})
		}
	}
	return files, err
}

// rawChange is one entry of git diff --raw: the file as it is afterwards.
type rawChange struct{ status, mode, object, path string }

func rawChanges(out []byte) (all []rawChange, err error) {
	parts := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if len(out) == 0 {
		return nil, nil
	}
	for i := 0; i < len(parts); i += 2 {
		f := strings.Fields(strings.TrimPrefix(string(parts[i]), ":"))
		if len(f) != 5 || i+1 == len(parts) {
			return nil, fmt.Errorf("git diff printed %q, which is not understood", parts[i])
		}
		all = append(all, rawChange{status: f[4], mode: f[1], object: f[3], path: string(parts[i+1])})
	}
	return all, nil
}

// staysInside reports whether the target of a symbolic link is written as one inside of the tree.
func staysInside(at, target string) bool {
	clean := path.Join(path.Dir(at), target)
	return target != "" && !path.IsAbs(target) && clean != ".." && !strings.HasPrefix(clean, "../")
}

func joined(scopes []Scope) string {
	var all []string
	for _, s := range scopes {
		all = append(all, string(s))
	}
	return strings.Join(all, ", ")
}
