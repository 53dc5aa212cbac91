package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// State describes the holders of one lock, and the records that dead holders left.
type State struct {
	Path    string
	Held    bool    // alone, by Holders[0]
	Shared  bool    // by Holders
	Holders []Owner // zero where a record cannot be read
	Left    []Owner // from the records of dead holders; zero where a record cannot be read
}

// Look returns the State of a lock. It takes no lock and changes nothing.
func Look(ctx context.Context, path string) (State, error) {
	s := State{Path: path}
	owner, held, err := Holder(ctx, path)
	if err != nil {
		return s, err
	}
	if held {
		s.Held, s.Holders = true, []Owner{owner}
		return s, nil
	}
	if left, found := leftBehind(path); found {
		s.Left = append(s.Left, left)
	}
	for _, seat := range seats(path) {
		owner, held, err := Holder(ctx, seat)
		if err != nil {
			return s, err
		}
		if held {
			s.Shared, s.Holders = true, append(s.Holders, owner)
		} else if left, found := leftBehind(seat); found {
			s.Left = append(s.Left, left)
		}
	}
	return s, nil
}

// Find lists the paths of the locks below a folder, sorted: every file that is called
// lock or ends in .lock, every path with a record or a seat beside it, and every file in
// one of folders that is not hidden. A folder that does not exist holds none. Nothing is looked for in a folder that skip
// reports; nil: none is skipped.
func Find(dir string, skip func(path string) bool, folders ...string) ([]string, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case e != nil && e.IsDir() && skip != nil && skip(path):
			return fs.SkipDir
		case err != nil:
			return err
		case e.Type().IsRegular() && (isLock(path) || !isTemp(path) && slices.Contains(folders, filepath.Dir(path))):
			found[lockOfSeat(strings.TrimSuffix(path, ownerSuffix))] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for locks in %s: %w", dir, err)
	}
	all := make([]string, 0, len(found))
	for path := range found {
		all = append(all, path)
	}
	slices.Sort(all)
	return all, nil
}

// isLock reports whether a file is a lock, or a part of one.
func isLock(path string) bool {
	return filepath.Base(path) == "lock" || strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ownerSuffix) || lockOfSeat(path) != path
}

// isTemp reports whether a file is hidden. Files that are being written are hidden.
func isTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// lockOfSeat returns the path of the lock that a seat belongs to, and any other path as it is.
func lockOfSeat(path string) string {
	if m := seatPattern.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return path
}
