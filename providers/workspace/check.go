package workspace

import (
	"context"
	"fmt"

	"vmctl/providers"
)

// SameRepository reports whether two folders belong to one repository. Relative ones are below files.
func (h Host) SameRepository(ctx context.Context, files, one, other string) bool {
	p := &Provider{host: h, settings: providers.Settings{Files: files}}
	first, err := p.repository(ctx, one)
	if err != nil {
		return false
	}
	second, err := p.repository(ctx, other)
	return err == nil && first == second
}

// CheckBranch fails if no workspace could have a branch of the repository that a folder belongs to: if there is no such
// repository, or if git accepts no branch of that name. It may be missing. A relative folder is below files. Nothing changes.
func (h Host) CheckBranch(ctx context.Context, files, folder, branch string) error {
	p := &Provider{host: h, settings: providers.Settings{Files: files}}
	repository, err := p.repository(ctx, folder)
	if err != nil {
		return err
	}
	if same, err := p.git(repository).Output(ctx, "check-ref-format", "--branch", branch); err != nil || same != branch {
		return fmt.Errorf("%q is not a name that git accepts for a branch", branch)
	}
	return nil
}
