package state

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
)

// reserveFile is a file that holds nothing. It takes room on the disk, which is given back
// when the disk is full and something is to be stopped or removed: that needs locks, and a
// journal.
const reserveFile = "reserve"

// reserveBytes is enough for the journal of some hundred steps, and for the snapshot that
// they become.
const reserveBytes = 256 << 10

// Reserve takes room for stopping and removing, if it has none. A disk that is too full for
// it is no error.
func (f Folder) Reserve() error {
	path := filepath.Join(f.Dir, reserveFile)
	if info, err := os.Stat(path); err == nil && info.Size() >= reserveBytes {
		return nil
	}
	content := make([]byte, reserveBytes)
	// A file system may leave out zeros, or pack what repeats itself.
	if _, err := rand.NewChaCha8([32]byte{}).Read(content); err != nil {
		return fmt.Errorf("reserve room in the data directory: %w", err)
	}
	if err := errors.Join(atomicfile.Clean(path), atomicfile.Write(path, content, 0o600)); !IsFull(err) {
		return err
	}
	return atomicfile.Clean(path)
}

// FreeReserve gives the reserved room back, and reports whether there was any.
func (f Folder) FreeReserve() (bool, error) {
	err := os.Remove(filepath.Join(f.Dir, reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
