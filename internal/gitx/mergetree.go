package gitx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MergeTree merges two commits of a repository as git merge does, and changes no file, index or branch: only objects are
// added. It returns the tree of the result if there is no conflict, else the paths in conflict, sorted.
func (g Git) MergeTree(ctx context.Context, ours, theirs string) (tree string, conflicts []string, err error) {
	out, err := g.Filter(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	if err != nil && Status(err) != 1 {
		return "", nil, err
	}
	tree, rest, _ := strings.Cut(string(out), "\x00")
	if !IsObjectName(tree) {
		return "", nil, errors.Join(fmt.Errorf("git merge-tree printed no tree: %.80q", out), err)
	}
	if err == nil {
		return tree, nil, nil
	}
	conflicts = slices.DeleteFunc(strings.Split(rest, "\x00"), func(name string) bool { return name == "" })
	slices.Sort(conflicts)
	return "", slices.Compact(conflicts), nil
}

// IsAncestor reports whether a commit is another one, or comes before it.
func (g Git) IsAncestor(ctx context.Context, before, after string) (bool, error) {
	_, err := g.Output(ctx, "merge-base", "--is-ancestor", before, after)
	if Status(err) == 1 {
		return false, nil
	}
	return err == nil, err
}
