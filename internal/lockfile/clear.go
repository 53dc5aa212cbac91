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
// holds or shares is a *HeldError at once, and nothing is removed. It makes no
// Acquire fail that runs at the same time.
func Clear(ctx context.Context, path string) (left []Owner, err error) {
	all, err := Sharers(ctx, path)
	if err == nil && len(all) > 0 {
		return nil, &HeldError{Path: path, Owner: all[0], Sharers: all}
	}
	if err == nil {
		left, err = clearRecord(ctx, path)
	}
	for _, seat := range seats(path) {
		if err != nil {
			break
		}
		var more []Owner
		more, err = clearRecord(ctx, seat)
		left = append(left, more...)
	}
	var held *HeldError
	if errors.As(err, &held) {
		return left, held
	}
	if err != nil {
		return left, fmt.Errorf("clear lock %s: %w", path, err)
	}
	return left, nil
}

// clearRecord removes what is beside one lock file, while it looks at that: whoever
// comes has to wait until it has looked.
func clearRecord(ctx context.Context, path string) (left []Owner, err error) {
	lock, err := take(ctx, path)
	if err != nil {
		return nil, err
	}
	if owner, found := leftBehind(path); found {
		left = []Owner{owner}
	}
	err = removeFile(ownerPath(path))
	return left, errors.Join(err, unlock(lock), lock.Close())
}

// take looks at a lock file that exists, or that a record is left of.
func take(ctx context.Context, path string) (*os.File, error) {
	_, fileErr := os.Lstat(path)
	_, recordErr := os.Lstat(ownerPath(path))
	if fileErr != nil && recordErr != nil {
		return nil, fileErr
	}
	for {
		file, err := open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err = lockShared(file); err == nil && isAt(file, path) {
			if err = survivors(ctx, file, path); err == nil {
				return file, nil
			}
		}
		if closeErr := file.Close(); closeErr != nil || ctx.Err() != nil {
			return nil, errors.Join(err, closeErr, ctx.Err())
		}
		if errors.Is(err, errHeld) {
			return nil, heldBy(ctx, path, err)
		}
		if err != nil {
			return nil, err
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
