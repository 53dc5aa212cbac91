// Package atomicfile replaces files so that nobody ever reads half of one: a
// reader sees the old content or the new, also when the writer is killed or the
// power fails.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const tempSuffix = ".tmp"

// Write replaces the file at path with data, durably, or leaves it as it was.
// The file gets exactly mode; a symbolic link at path is replaced, not followed.
// The folder must exist and be writable.
//
// After an error the old content is still there, with one exception: where the
// folder cannot be synced the new content is, and a power failure may undo it: ErrNotSynced.
// The error names path and keeps its cause visible to errors.Is.
func Write(path string, data []byte, mode fs.FileMode) error {
	return WriteFrom(path, mode, bytesOf(data))
}

// WriteFrom is Write for content of any length: fill writes it, once.
func WriteFrom(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := replace(path, mode, fill); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func bytesOf(data []byte) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	}
}

// Create writes a file that does not exist yet, under the conditions of Write. An existing file
// stays unchanged, and the error is fs.ErrExist.
func Create(path string, data []byte, mode fs.FileMode) error {
	if err := create(path, data, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replace(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	temp, err := writeTemp(path, mode, fill)
	if err != nil {
		return err
	}
	return rename(temp, path)
}

func create(path string, data []byte, mode fs.FileMode) error {
	temp, err := writeTemp(path, mode, bytesOf(data))
	if err != nil {
		return err
	}
	if err = os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		reserved, taken := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if taken == nil {
			return errors.Join(reserved.Close(), rename(temp, path))
		}
		err = taken
	}
	if err = errors.Join(withoutTempName(err), os.Remove(temp)); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// ErrNotSynced reports that the new content is in place, and that a power failure may undo it.
var ErrNotSynced = errors.New("it is written, and its folder cannot be synced")

// rename gives a temporary file its name, or removes it.
func rename(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("put it in place: %w", withoutTempName(err)), os.Remove(temp))
	}
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSynced, err)
	}
	return nil
}

// writeTemp writes a temporary file beside path, and returns its path.
func writeTemp(path string, mode fs.FileMode, fill func(io.Writer) error) (string, error) {
	dir, base := filepath.Split(path)
	temp, err := os.CreateTemp(filepath.Clean(dir), tempPrefix(base)+"*"+tempSuffix)
	if err != nil {
		return "", fmt.Errorf("make a file beside it: %w", withoutTempName(err))
	}
	if err := writeSynced(temp, mode, fill); err != nil {
		return "", errors.Join(withoutTempName(err), os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

// withoutTempName removes the random name of the temporary file from an error: it means nothing to
// the reader.
func withoutTempName(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && strings.HasSuffix(path.Path, tempSuffix) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// writeSynced fills, syncs and closes f.
func writeSynced(f *os.File, mode fs.FileMode, fill func(io.Writer) error) error {
	err := fill(f)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// tempPrefix starts the names of the temporary files of base. They are hidden,
// so that patterns such as *.json do not match them.
func tempPrefix(base string) string { return "." + base + "." }

// Remove removes a file that may be gone already.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Clean removes the temporary files that killed writers of path left behind.
// The caller knows that nobody is writing path now. A folder that does not
// exist holds none.
func Clean(path string) error {
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean up after writers of %s: %w", path, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !isTemp(e.Name(), base) })
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clean up after writers of %s: %w", path, err)
		}
	}
	return nil
}

// isTemp reports whether name is a temporary file of base: the prefix, digits
// as os.CreateTemp chooses them, the suffix. The digits keep the files of
// "state.json.backup" apart from those of "state.json".
func isTemp(name, base string) bool {
	middle, ok := strings.CutPrefix(name, tempPrefix(base))
	if !ok {
		return false
	}
	middle, ok = strings.CutSuffix(middle, tempSuffix)
	return ok && middle != "" && strings.Trim(middle, "0123456789") == ""
}

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
