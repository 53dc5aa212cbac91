package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNotRegular reports that a path leads to a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("it is no regular file")

// Read returns the content of the regular file at path; it follows a symbolic link.
// It never waits for another process, as opening a pipe would: for anything but a
// regular file it fails with an error that is ErrNotRegular and names path.
func Read(path string) ([]byte, error) {
	if err := CheckRegular(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// CheckRegular fails as Read does if path leads to anything but a regular file. It
// accepts a path that does not exist or cannot be looked at.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	return nil
}
