package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// LookPath returns the absolute path of the program that a shell in dir with the environment env
// would exec by that name. dir is absolute. A program that does not exist is fs.ErrNotExist; any
// other error says why the one that exists cannot be run.
func LookPath(name, dir string, env []string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%q: %w", name, fs.ErrNotExist)
	}
	if strings.ContainsAny(name, "/"+string(filepath.Separator)) {
		return exec.LookPath(within(dir, name))
	}
	folders := ""
	for _, v := range env { // of two with one name, the later one counts
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			folders = value
		}
	}
	err := fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	for _, folder := range filepath.SplitList(folders) {
		path, found := exec.LookPath(filepath.Join(within(dir, folder), name))
		if found == nil {
			return path, nil
		}
		if (errors.Is(found, fs.ErrPermission) || errors.Is(found, syscall.EISDIR)) && errors.Is(err, fs.ErrNotExist) {
			err = found
		}
	}
	return "", err
}

// within returns the absolute path of what a process in dir calls path.
func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Status returns the exit status of a child from the error of Child.Wait: 128 and the signal's
// number, if a signal ended it. ok is false if the error says nothing about its end.
func Status(err error) (status int, ok bool) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, true
	case !errors.As(err, &exit):
		return 0, false
	}
	return statusOf(exit), true
}
