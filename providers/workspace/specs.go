package workspace

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"vmctl/internal/gitx"
)

// specSuffix ends the names of the files that vmctl acts on.
const specSuffix = ".vmctl.hcl"

// isSpec reports whether vmctl acts on a file of a repository. Some systems do not tell capital letters from small ones.
func isSpec(name string) bool {
	return strings.HasSuffix(strings.ToLower(path.Base(name)), specSuffix)
}

// specsChanged lists the specs that the commits between two commits change, or that differ in the tree of the merge, sorted.
// A spec that one commit changes and another one changes back is in the list: it was there to be applied.
func specsChanged(ctx context.Context, git gitx.Git, ours, theirs, tree string) ([]string, error) {
	found := map[string]bool{}
	for _, args := range [][]string{
		{"log", "-z", "-c", "--format=", "--name-only", "--no-renames", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", ours + ".." + theirs, "--"},
		{"diff-tree", "-z", "-r", "--name-only", "--no-renames", "--ignore-submodules=none", ours, tree, "--"},
	} {
		out, err := git.Filter(ctx, nil, args...)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(string(out), "\x00") {
			if isSpec(strings.TrimPrefix(name, "\n")) {
				found[strings.TrimPrefix(name, "\n")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
