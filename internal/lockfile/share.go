package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Share takes the lock together with all who share it. While one process holds
// it alone, Share waits as Acquire does and fails as Acquire does. Every one who
// shares has a seat: a lock of its own beside the shared one, Path + ".seat-N",
// whose record says who it is, so that it vanishes with its process. Seats are
// taken again: there are as many as ever shared at one time.
func Share(ctx context.Context, r Request) (*Lock, error) {
	return acquire(ctx, r, lockMode{lock: tryShare, record: takeSeat})
}

// Sharers lists who share the lock, by seat. It changes nothing and makes nobody
// fail. The Owner of one whose record cannot be read is zero; one who has just
// come may be missing.
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

// whyNotExclusive says why a lock could not be had alone and could be shared. One
// who shares it and has no seat yet is as good as one who looks: it is tried
// again.
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

// releaseShare frees the seat and then the share, so that nobody is named who has left.
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
