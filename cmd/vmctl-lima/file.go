package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempSuffix ends the names of unfinished files. Lima removes files with that end from the folder
// of an instance that it stops.
const tempSuffix = ".tmp"

// writeFile writes a file that does not exist before it is complete.
func writeFile(path, content string, mode fs.FileMode) error {
	temp, err := writeTemp(path, content, mode)
	if err != nil {
		return err
	}
	return putInPlace(temp, path)
}

// createFile is writeFile for a path at which nothing may be: what is there stays, and the error is
// fs.ErrExist.
func createFile(path, content string, mode fs.FileMode) error {
	temp, err := writeTemp(path, content, mode)
	if err != nil {
		return err
	}
	err = os.Link(temp, path)
	return errors.Join(err, os.Remove(temp))
}

// writeTemp writes and syncs a file beside path, and returns its path.
func writeTemp(path, content string, mode fs.FileMode) (string, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), tempPattern(path))
	if err != nil {
		return "", err
	}
	_, err = temp.WriteString(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

// putInPlace gives a complete and synced file its name, or removes it.
func putInPlace(temp, path string) error {
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// tempPattern is the pattern of the names of unfinished files for path.
func tempPattern(path string) string { return "." + filepath.Base(path) + ".*" + tempSuffix }

// removeTemps removes the unfinished files for path that a killed process left.
func removeTemps(path string) error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(filepath.Dir(path)), tempPattern(path)))
	if err != nil {
		return err
	}
	for _, temp := range left {
		if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// syncFile waits until the content of a file is on the disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) { // a file that is read-only
		f, err = os.Open(path)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// escapeGlob returns a path as a pattern that matches that path alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
