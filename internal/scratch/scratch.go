// Package scratch makes private folders for files that live no longer than the process that made them. The maker holds a lock
// in its folder, which the kernel frees when the maker ends: the next process finds the folders that killed ones left, and
// removes them.
package scratch

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

// Private makes a folder that no other user can open, with those around it. It fails where the path leads to anything else, a folder
// that another user made included: whoever can guess the path could wait there.
func Private(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	is, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !is.IsDir():
		return fmt.Errorf("%s is no folder", path)
	case !isMine(is):
		return fmt.Errorf("%s belongs to another user", path)
	}
	return os.Chmod(path, 0o700) //nolint:gosec // a folder
}

// LockName is the name of the lock in each folder.
const LockName = "lock"

// Folder is a private folder, with its lock.
type Folder struct {
	Dir  string
	lock *lockfile.Lock
}

// Make makes a folder in parent that no other user can open. Its name begins with prefix. Another process that sweeps may take
// the folder for a left one before it is locked: then there is another try.
func Make(ctx context.Context, parent, prefix string) (*Folder, error) {
	var all error
	for range 3 {
		dir, err := os.MkdirTemp(parent, prefix) // 0700
		if err != nil {
			return nil, err
		}
		lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(dir, LockName), Owner: lockfile.Owner{PID: os.Getpid()}})
		if err == nil {
			return &Folder{dir, lock}, nil
		}
		all = errors.Join(all, err, os.RemoveAll(dir))
	}
	return nil, all
}

// Remove removes the folder with everything in it. A file that others add meanwhile is left to the next sweep.
func (f *Folder) Remove() error {
	err := f.lock.Release()
	if gone := os.RemoveAll(f.Dir); !errors.Is(gone, fs.ErrExist) { // a sweep that locks it adds the lock
		err = errors.Join(err, gone)
	}
	return err
}

// Sweep removes the folders in parent that processes of this user made with a prefix, and left when they were killed. A folder
// for which keep is true stays; nil keeps none. Whatever cannot be removed stays for the next sweep.
func Sweep(ctx context.Context, parent, prefix string, keep func(dir string) bool) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		info, err := e.Info()
		if err == nil && info.IsDir() && isMine(info) {
			_ = sweep(ctx, filepath.Join(parent, e.Name()), keep) //nolint:errcheck // the next sweep tries again
		}
	}
}

// sweep removes a folder that nobody has locked. One without a lock is removed if it is empty: else others made it. It asks keep before it takes the lock, since others may take its hold for that of
// the maker, and again while it holds the lock.
func sweep(ctx context.Context, dir string, keep func(dir string) bool) error {
	if keep != nil && keep(dir) {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, LockName)); errors.Is(err, fs.ErrNotExist) {
		return os.Remove(dir)
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: filepath.Join(dir, LockName)})
	if err != nil {
		return err
	}
	if keep == nil || !keep(dir) {
		err = os.RemoveAll(dir)
	}
	return errors.Join(err, lock.Release())
}
