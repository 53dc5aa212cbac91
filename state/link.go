package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
)

// rewrite replaces a file of the state. A symbolic link stays one, and what it
// leads to is replaced.
func rewrite(path string, data []byte) error {
	target, err := resolveLink(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(target, data, 0o600)
}

// resolveLink is the file that is read and written under a path: what a symbolic link
// leads to in the end, else path itself.
func resolveLink(path string) (string, error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("follow the symbolic link %s: it leads to nothing; nothing was changed: remove it, or bring back what it led to", path)
	}
	if err != nil {
		return "", fmt.Errorf("follow the symbolic link %s: %w", path, err)
	}
	return target, nil
}
