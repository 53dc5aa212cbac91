package job

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/mountinfo"
	"vmctl/internal/shellword"
)

// mountedError reports that something is mounted in a folder of a job: its files are not the job's.
type mountedError struct{ paths []string }

// Error names the mounts, and what ends them.
func (e *mountedError) Error() string {
	return "something is mounted in it, and left alone; unmount it first: " + e.unmount()
}

// unmount returns the command line that ends the mounts: those below others first.
func (e *mountedError) unmount() string {
	line := []string{"umount"}
	for i := len(e.paths) - 1; i >= 0; i-- {
		line = append(line, e.paths[i])
	}
	return shellword.Join(line)
}

// unmounted fails with a *mountedError if something is mounted on a folder or below it. Nothing of its job lives.
func unmounted(dir string) error {
	paths, err := mountinfo.Below(dir)
	if err == nil && len(paths) > 0 {
		err = &mountedError{paths}
	}
	return err
}

// mountsIn returns the mounts that an error is about; none: it is about others.
func mountsIn(err error) []string {
	var mounted *mountedError
	if errors.As(err, &mounted) {
		return mounted.paths
	}
	return nil
}

// removeTree removes a folder, also one whose folders its job has made unreadable. If something is mounted in it, it removes nothing,
// and fails with a *mountedError.
func removeTree(dir string) error {
	if isGone(dir) {
		return nil
	}
	if err := unmounted(dir); err != nil {
		return err
	}
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			return nil
		}
		if info, failed := os.Lstat(name); failed != nil || !info.IsDir() || info.Mode().Perm()&0o700 == 0o700 {
			return nil //nolint:nilerr // removing it tells
		}
		return os.Chmod(name, 0o700)
	})
	return errors.Join(err, os.RemoveAll(dir))
}
