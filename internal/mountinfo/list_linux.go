package mountinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// List returns the mounts that this process sees.
func List() ([]Entry, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the list of mounts: %w", err)
	}
	return Parse(string(text))
}

// Below returns the paths at which something is mounted on a folder or on anything below it, sorted. A folder that is not there has
// none, and a symbolic link has none either: what it leads to is elsewhere.
func Below(dir string) ([]string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := List()
	if err != nil {
		return nil, err
	}
	return In(filepath.Join(parent, filepath.Base(dir)), all), nil
}
