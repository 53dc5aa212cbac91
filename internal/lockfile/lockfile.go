// Package lockfile holds a lock that the kernel frees when its holder ends,
// however it ends. The lock is a flock on a file that is never deleted; a record
// beside it says who holds it. A lock is held or not held: there are no ages and
// nothing to clean up after a crash.
//
// A flock on a network file system excludes only as far as that system does.
package lockfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vmctl/internal/atomicfile"
)

// Owner is who holds a lock, as the holder says. The zero Owner is somebody who
// has not said yet, or cannot be read.
type Owner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Request is what Acquire is asked for.
type Request struct {
	Path  string // of the lock file; its folder exists. The record is Path + ".owner".
	Owner Owner
	Wait  time.Duration // how long to wait for another holder; 0: not at all
	// Waiting is called once, before the first wait for another holder. nil is fine.
	Waiting func(Owner)
}

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
	path string
}

// HeldError says that another holds the lock.
type HeldError struct {
	Path  string
	Owner Owner
}

// Error names the holder.
func (e *HeldError) Error() string {
	if e.Owner == (Owner{}) {
		return fmt.Sprintf("lock %s: held by another process", e.Path)
	}
	return fmt.Sprintf("lock %s: held by %s (pid %d on %s) since %s",
		e.Path, e.Owner.Command, e.Owner.PID, e.Owner.Host, e.Owner.Since.Format(time.RFC3339))
}

const (
	// pollEvery is the longest that a freed lock stays unnoticed by a waiter.
	pollEvery = 20 * time.Millisecond
	// lookEvery is how soon a lock is tried again that is only being looked at.
	lookEvery = time.Millisecond
	// lookLimit ends the patience with whoever looks: a look takes microseconds.
	lookLimit = 5 * time.Second
	// recordLimit is how long a new holder is given to write its record.
	recordLimit = 200 * time.Millisecond
)

var (
	errHeld   = errors.New("held by another")
	errLooked = errors.New("looked at by another")
)

// Acquire takes the lock. While another process holds it, Acquire waits for
// r.Wait at most and then fails with a *HeldError; a lock that this very process
// holds already is a *HeldError at once. An ended ctx ends the wait with its
// error. Where the file system has no flock the error says so.
func Acquire(ctx context.Context, r Request) (*Lock, error) {
	deadline, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	looks, cancel := context.WithTimeout(ctx, max(r.Wait, lookLimit))
	defer cancel()
	for told := false; ; {
		file, err := try(r.Path)
		switch {
		case err == nil:
			return own(file, r)
		case errors.Is(err, errLooked):
			if !sleep(looks, lookEvery) {
				return nil, giveUp(ctx, fmt.Errorf("lock %s: another process keeps looking at it", r.Path))
			}
		case errors.Is(err, errHeld):
			if !told || deadline.Err() != nil {
				owner := readOwner(ctx, r.Path)
				if deadline.Err() != nil || isSelf(owner, r.Owner) {
					return nil, giveUp(ctx, &HeldError{Path: r.Path, Owner: owner})
				}
				if r.Waiting != nil {
					r.Waiting(owner)
				}
				told = true
			}
			// At the deadline it is tried once more.
			sleep(deadline, pollEvery)
		default:
			return nil, fmt.Errorf("lock %s: %w", r.Path, err)
		}
	}
}

// giveUp prefers the end of the caller's context over what was seen.
func giveUp(ctx context.Context, seen error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", seen, err)
	}
	return seen
}

// isSelf reports whether holder is the process that asks. It would wait for
// itself.
func isSelf(holder, asking Owner) bool {
	return holder.PID != 0 && holder.PID == asking.PID && holder.Host == asking.Host
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// try takes the lock once, without waiting. A Holder call elsewhere locks the
// file shared for a moment, so a refused exclusive lock proves nothing: only
// when a shared one is refused too is there a holder.
func try(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = lockExclusive(file)
	if errors.Is(err, errHeld) {
		if err = lockShared(file); err == nil {
			err = errors.Join(errLooked, unlock(file))
		}
	} else if err == nil && !isAt(file, path) {
		// Another file was put under the name: whoever comes next locks that one.
		err = errors.Join(errLooked, unlock(file))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// isAt reports whether file is still what path names.
func isAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

// own writes the record of a lock that was taken.
func own(file *os.File, r Request) (*Lock, error) {
	l := &Lock{file: file, path: r.Path}
	if err := l.write(r.Owner); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", r.Path, err), l.Release())
	}
	return l, nil
}

func (l *Lock) write(o Owner) error {
	// The record of a holder that crashed must not be read as ours meanwhile.
	if err := removeFile(ownerPath(l.path)); err != nil {
		return err
	}
	if err := atomicfile.Clean(ownerPath(l.path)); err != nil {
		return err
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return atomicfile.Write(ownerPath(l.path), append(data, '\n'), 0o600)
}

// Release frees the lock and removes its record; the lock file stays. The lock
// is free afterwards, also when an error says what could not be tidied.
func (l *Lock) Release() error {
	// The record goes first: the next holder writes its own.
	err := errors.Join(removeFile(ownerPath(l.path)), unlock(l.file), l.file.Close())
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// Holder says whether the lock is held, and by whom. It never makes an Acquire
// fail that runs at the same time, and it changes nothing. A lock whose file
// does not exist is not held. The Owner of a held lock is zero where its record
// cannot be read.
func Holder(ctx context.Context, path string) (owner Owner, held bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Owner{}, false, nil
	}
	if err != nil {
		return Owner{}, false, fmt.Errorf("look at lock %s: %w", path, err)
	}
	err = lockShared(file)
	if err == nil {
		err = unlock(file)
	} else if errors.Is(err, errHeld) {
		held, err = true, nil
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return Owner{}, false, fmt.Errorf("look at lock %s: %w", path, err)
	}
	if !held {
		return Owner{}, false, nil
	}
	return readOwner(ctx, path), true, nil
}

// readOwner returns the zero Owner for a record that is not there or cannot be
// read: who holds a lock is told for people, and never decides anything but not
// to wait for oneself.
func readOwner(ctx context.Context, path string) Owner {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	var o Owner
	for {
		data, err := os.ReadFile(ownerPath(path))
		if err == nil && json.Unmarshal(data, &o) == nil {
			return o
		}
		if !sleep(ctx, lookEvery) {
			return Owner{}
		}
	}
}

func ownerPath(path string) string { return filepath.Clean(path) + ".owner" }

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unsupported explains a file system without flock.
func unsupported(cause error) error {
	return fmt.Errorf("the file system has no file locks (%w): put it on a local disk", cause)
}
