//go:build unix && !linux

package mountinfo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Below returns the folders on other devices than the one around a folder, of the folder itself and of all below it that this user may
// read, in the order of their paths.
func Below(dir string) (found []string, err error) {
	device, err := deviceOf(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil { // what nobody may read, nobody has mounted
			return nil //nolint:nilerr // removing it tells
		}
		if !e.IsDir() {
			return nil
		}
		on, err := deviceOf(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case on != device:
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// deviceOf returns the device that a folder is on.
func deviceOf(path string) (uint64, error) {
	var s syscall.Stat_t
	err := syscall.Lstat(path, &s)
	return uint64(s.Dev), err //nolint:gosec // it is compared alone
}
