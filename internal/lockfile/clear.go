package lockfile

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Clear removes the records that dead holders and sharers of a lock have left, and
// returns their Owners: a zero Owner for a record that cannot be read. The kernel says
// whether they are dead: if somebody holds or shares the lock, Clear fails with a
// *HeldError at once and removes nothing. It makes no Acquire fail that runs at the
// same time.
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

// clearRecord removes the record beside one lock file. It holds the lock file shared
// meanwhile, so that a new holder has to wait.
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

// take locks a lock file shared, and makes the file if only its record is left. It fails
// with a *HeldError if somebody holds the lock, and with fs.ErrNotExist if there is
// neither a file nor a record.
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
			if err = checkReplaced(ctx, file, path); err == nil {
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

// leftBehind returns the Owner in the record of a lock that nobody holds, and reports
// whether there is a record.
func leftBehind(path string) (owner Owner, found bool) {
	if _, err := os.Lstat(ownerPath(path)); err != nil {
		return Owner{}, false
	}
	r, _ := readRecord(path)
	return r.Owner, true
}

// seats lists the paths of all seats that a lock ever had.
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
