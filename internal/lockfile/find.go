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

// State is what can be seen of one lock.
type State struct {
	Path    string
	Held    bool    // alone, by Holders[0]
	Shared  bool    // by Holders
	Holders []Owner // zero where a record cannot be read
	Left    []Owner // what the records say that dead holders left; zero where one cannot be read
}

// Look says who holds or shares a lock, and what dead holders left of it. It
// takes no lock and changes nothing.
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

// Find lists the lock files below a folder, sorted: what is called lock or
// ends in .lock, what a record or a seat stands beside, and all that is in one of
// the folders of locks. A folder that does not exist holds none.
func Find(dir string, folders ...string) ([]string, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
			return nil
		case err != nil:
			return err
		case e.Type().IsRegular() && (isLock(path) || !isTemp(path) && slices.Contains(folders, filepath.Dir(path))):
			found[ofSeat(strings.TrimSuffix(path, ownerSuffix))] = true
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
	return filepath.Base(path) == "lock" || strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ownerSuffix) || ofSeat(path) != path
}

// isTemp reports whether a file is hidden, as those are that are being written.
func isTemp(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// ofSeat is the lock that a seat belongs to, and any other path as it is.
func ofSeat(path string) string {
	if m := seatPattern.FindStringSubmatch(path); m != nil {
		return m[1]
	}
	return path
}
