package workspace

import (
	"context"
	"fmt"

	"vmctl/internal/gitx"
)

// Collision tells why two commits cannot be merged without a conflict.
type Collision struct {
	Files []string // in conflict, sorted; none: the commits have no history in common
}

// Collide merges two commits of a repository and keeps no result. It returns nil if they do not collide. No branch, index
// or file changes.
func (r Repositories) Collide(ctx context.Context, repository, one, other string) (*Collision, error) {
	git := r.provider().git(repository)
	_, err := git.Output(ctx, "merge-base", one, other)
	switch {
	case gitx.Status(err) == 1:
		return &Collision{}, nil
	case err != nil:
		return nil, fmt.Errorf("compare commits %s and %s: %w", one, other, err)
	}
	_, files, err := git.MergeTree(ctx, one, other)
	switch {
	case err != nil:
		return nil, fmt.Errorf("compare commits %s and %s: %w", one, other, err)
	case len(files) == 0:
		return nil, nil
	}
	return &Collision{Files: files}, nil
}
