package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Share takes the lock together with the other processes that share it. While one process holds it
// alone, Share waits and fails as Acquire does. Each sharer has a seat: a lock of its own beside
// the shared one, Path + ".seat-N", with a record that names the sharer, so that the record loses
// its meaning when the process ends. Free seats are reused: there are as many as processes
// ever shared the lock at one time.
func Share(ctx context.Context, r Request) (*Lock, error) {
	return acquire(ctx, r, lockMode{lock: tryShare, record: takeSeat})
}

// Sharers lists the processes that share the lock, by seat. It changes nothing, and makes no other
// call fail. The Owner of a sharer is zero if its record cannot be read; a process that has just
// taken the lock may be missing.
func Sharers(ctx context.Context, path string) ([]Owner, error) {
	var all []Owner
	for n := 0; ; n++ {
		seat := seatPath(path, n)
		if _, err := os.Stat(seat); errors.Is(err, fs.ErrNotExist) {
			return all, nil
		}
		owner, held, err := Holder(ctx, seat)
		if err != nil {
			return all, err
		}
		if held {
			all = append(all, owner)
		}
	}
}

// sharedError is errHeld by these.
type sharedError struct{ sharers []Owner }

func (e *sharedError) Error() string { return errHeld.Error() }

func (e *sharedError) Is(target error) bool { return target == errHeld }

// whyNotExclusive returns the reason why a lock could be taken shared but not alone: other
// processes share it, or one examines it. A sharer without a seat yet counts as one that examines
// it: the caller tries again.
func whyNotExclusive(ctx context.Context, path string) error {
	all, err := Sharers(ctx, path)
	switch {
	case err != nil:
		return err
	case len(all) > 0:
		return &sharedError{sharers: all}
	default:
		return errLooked
	}
}

// tryShare locks the file shared, once, without waiting.
func tryShare(_ context.Context, path string) (*os.File, error) {
	file, err := open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = lockShared(file)
	if err == nil && !isAt(file, path) {
		err = errors.Join(errLooked, unlock(file))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// takeSeat takes the first seat that is free.
func takeSeat(ctx context.Context, file *os.File, r Request) (*Lock, error) {
	for n := 0; ; n++ {
		seat, err := Acquire(ctx, Request{Path: seatPath(r.Path, n), Owner: r.Owner})
		var held *HeldError
		switch {
		case err == nil:
			return &Lock{file: file, path: r.Path, seat: seat}, nil
		case errors.As(err, &held) && ctx.Err() == nil:
		default:
			return nil, errors.Join(err, unlock(file), file.Close())
		}
	}
}

// releaseShare frees the seat first and then the share, so that Sharers never lists a process that
// has left.
func (l *Lock) releaseShare() error {
	err := errors.Join(l.seat.Release(), unlock(l.file), l.file.Close())
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

func seatPath(path string, n int) string {
	return fmt.Sprintf("%s.seat-%d", filepath.Clean(path), n)
}
