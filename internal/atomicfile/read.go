package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// ErrNotRegular is what Read fails with on a folder, a pipe, a socket or a
// device.
var ErrNotRegular = errors.New("it is no regular file")

// Read returns the content of the regular file at path; a symbolic link is
// followed. It never waits for another process, as opening a pipe would: what is
// no regular file is an error that is ErrNotRegular and names path.
func Read(path string) ([]byte, error) {
	if err := CheckRegular(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// CheckRegular fails as Read does on what is there and no regular file.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	return nil
}
