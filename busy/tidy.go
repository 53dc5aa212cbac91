package busy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/lockfile"
)

// Tidy removes the records of those who ended inside a VM, or while they kept one
// closed, without taking them along. They hold nothing any more: the records are
// only in the way of who looks. It disturbs nobody who lives.
func (f Folder) Tidy(ctx context.Context) error {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for those at work in VMs: %w", err)
	}
	cleared := map[string]bool{}
	for _, e := range entries {
		lock, isRecord := lockOf(e.Name())
		if !isRecord || cleared[lock] {
			continue
		}
		cleared[lock] = true
		var held *lockfile.HeldError
		if _, err := lockfile.Clear(ctx, filepath.Join(f.Dir, lock)); err != nil && !errors.As(err, &held) {
			return fmt.Errorf("remove what was left by those at work in VMs: %w", err)
		}
	}
	return nil
}

// lockOf is the lock that a record belongs to, that of one seat of it too. No name
// of a lock here has such a part itself.
func lockOf(file string) (lock string, isRecord bool) {
	name, isRecord := strings.CutSuffix(file, ".owner")
	name, _, _ = strings.Cut(name, ".seat-")
	return name, isRecord
}
