package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// begun names what was begun in a checkout of this host, and not ended, such as "a rebase"; "": nothing.
func (p *Provider) begun(ctx context.Context, dir string) (string, error) {
	own, err := p.git(dir).Output(ctx, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return "", fmt.Errorf("see what was begun in %s: %w", dir, err)
	}
	for _, one := range []struct{ file, what string }{
		{"MERGE_HEAD", "a merge"},
		{"rebase-merge", "a rebase"},
		{"rebase-apply", "a rebase"},
		{"CHERRY_PICK_HEAD", "a cherry-pick"},
		{"REVERT_HEAD", "a revert"},
		{"BISECT_LOG", "a bisection"},
	} {
		if _, err := os.Lstat(filepath.Join(own, one.file)); err == nil {
			return one.what, nil
		}
	}
	return "", nil
}
