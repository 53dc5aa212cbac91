package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Clear removes the records that holders left who did not live to do it, those
// of who shared the lock too, and returns who they were: zero Owners where that
// cannot be read. That they are dead is the kernel's word: a lock that somebody
// holds or shares is a *HeldError at once, and nothing is removed.
func Clear(ctx context.Context, path string) (left []Owner, err error) {
	lock, err := take(ctx, path)
	if err != nil {
		return nil, err
	}
	for _, seat := range append([]string{path}, seats(path)...) {
		if owner, found := leftBehind(seat); found {
			left = append(left, owner)
		}
		err = errors.Join(err, removeRecord(seat)) // what was half written too
	}
	if err = errors.Join(err, unlock(lock), lock.Close()); err != nil {
		return left, fmt.Errorf("clear lock %s: %w", path, err)
	}
	return left, nil
}

// take locks a file that exists, or that a record is left of, for a moment and
// without a record of its own.
func take(ctx context.Context, path string) (*os.File, error) {
	_, fileErr := os.Lstat(path)
	_, recordErr := os.Lstat(ownerPath(path))
	if fileErr != nil && recordErr != nil {
		return nil, fmt.Errorf("clear lock %s: %w", path, fileErr)
	}
	looks, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for {
		file, err := try(ctx, path)
		switch {
		case err == nil:
			return file, nil
		case errors.Is(err, errHeld):
			return nil, heldBy(ctx, path, err)
		case !errors.Is(err, errLooked):
			return nil, fmt.Errorf("clear lock %s: %w", path, err)
		}
		if !sleep(looks, lookEvery) {
			return nil, giveUp(ctx, fmt.Errorf("clear lock %s: another process keeps looking at it", path))
		}
	}
}

// leftBehind is what the record of a lock says that nobody holds.
func leftBehind(path string) (owner Owner, found bool) {
	if _, err := os.Lstat(ownerPath(path)); err != nil {
		return Owner{}, false
	}
	r, _ := readRecord(path)
	return r.Owner, true
}

// seats lists the seats that a lock ever had.
func seats(path string) []string {
	var all []string
	for n := 0; ; n++ {
		seat := seatPath(path, n)
		_, fileErr := os.Lstat(seat)
		_, recordErr := os.Lstat(ownerPath(seat))
		if fileErr != nil && recordErr != nil {
			return all
		}
		all = append(all, seat)
	}
}
