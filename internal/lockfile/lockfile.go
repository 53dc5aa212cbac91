// Package lockfile holds locks that the kernel frees when their holder ends, however it ends. A
// lock is a flock on a file that is never deleted; a record beside the file names the holder. A
// lock is either held or not: locks have no age, and a crash leaves nothing to clean up. A shared
// lock excludes only processes that want it alone.
//
// On a network file system a flock excludes only the processes that the file system lets it
// exclude.
package lockfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/clock"
)

// Owner describes the holder of a lock, as its record does. The zero Owner stands for a
// holder whose record is not written yet, or cannot be read.
type Owner struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Request describes the lock that Acquire or Share takes, and the wait for it.
type Request struct {
	Path  string // of the lock file; its folder exists. The record is Path + ".owner".
	Owner Owner
	Wait  time.Duration // how long to wait for another holder; 0: not at all
	// Waiting is called once, before the first wait for another holder. nil is fine.
	Waiting func(Owner)
}

// Lock is a lock that this process holds, alone or with others.
type Lock struct {
	file    *os.File
	path    string
	seat    *Lock  // of a sharer: the lock of its seat, with the record; nil: held alone
	written []byte // the bytes of the record
}

// HeldError reports that another process holds the lock, or that others share it.
type HeldError struct {
	Path     string
	Owner    Owner   // the holder, or the first of Sharers
	Sharers  []Owner // none: Owner holds it alone
	Replaced bool    // the lock file was replaced while it was held: the holder has the old one
	Self     bool    // this very process is a holder
}

// Error names the holder, or the first of those who share the lock.
func (e *HeldError) Error() string {
	more := ""
	switch {
	case e.Replaced:
		more = ", though its file was replaced"
	case len(e.Sharers) > 1:
		more = fmt.Sprintf(", and by %d more", len(e.Sharers)-1)
	}
	if e.Owner == (Owner{}) {
		return fmt.Sprintf("lock %s: held by another process%s", e.Path, more)
	}
	return fmt.Sprintf("lock %s: held by %s (pid %d on %s) since %s%s",
		e.Path, e.Owner.Command, e.Owner.PID, e.Owner.Host, e.Owner.Since.Format(time.RFC3339), more)
}

const (
	// pollEvery is the longest time until a waiting process notices a freed lock.
	pollEvery = 20 * time.Millisecond
	// lookEvery is the time between two tries while another process only examines the lock, or
	// while a record is not readable yet.
	lookEvery = time.Millisecond
	// lookLimit limits the wait for processes that only examine the lock, if Request.Wait is
	// shorter: examining takes microseconds.
	lookLimit = 5 * time.Second
	// recordLimit limits the wait for a new holder to write its record.
	recordLimit = 200 * time.Millisecond
)

var (
	errHeld     = errors.New("held by another")
	errReplaced = errors.New("held by another, whose file was replaced")
	errLooked   = errors.New("looked at by another")
)

// Acquire takes the lock. While another process holds it, or others share it,
// Acquire waits for r.Wait at most and then fails with a *HeldError. It fails with a
// *HeldError at once if this very process holds the lock already. An ended ctx ends the
// wait with its error. If the file system has no flock, the error says so.
func Acquire(ctx context.Context, r Request) (*Lock, error) {
	return acquire(ctx, r, lockMode{lock: try, record: recordOwner})
}

// lockMode holds the two steps of taking a lock, either alone or shared.
type lockMode struct {
	lock   func(context.Context, string) (*os.File, error) // once, without waiting
	record func(context.Context, *os.File, Request) (*Lock, error)
}

func acquire(ctx context.Context, r Request, w lockMode) (*Lock, error) {
	deadline, cancel := context.WithTimeout(ctx, r.Wait)
	defer cancel()
	looks, cancel := context.WithTimeout(ctx, max(r.Wait, lookLimit))
	defer cancel()
	for told := false; ; {
		file, err := w.lock(ctx, r.Path)
		switch {
		case err == nil:
			return w.record(ctx, file, r)
		case errors.Is(err, errLooked):
			if !clock.Pause(looks, lookEvery) {
				return nil, giveUp(ctx, fmt.Errorf("lock %s: another process keeps looking at it", r.Path))
			}
		case errors.Is(err, errHeld):
			if !told || deadline.Err() != nil {
				held := heldBy(ctx, r.Path, err)
				held.Self = isSelf(r)
				if deadline.Err() != nil || held.Self {
					return nil, giveUp(ctx, held)
				}
				if r.Waiting != nil {
					r.Waiting(held.Owner)
				}
				told = true
			}
			// At the deadline the loop tries once more.
			clock.Pause(deadline, pollEvery)
		default:
			return nil, fmt.Errorf("lock %s: %w", r.Path, err)
		}
	}
}

// giveUp adds the error of an ended ctx to seen.
func giveUp(ctx context.Context, seen error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", seen, err)
	}
	return seen
}

// heldBy returns the *HeldError for a lock that err says is held.
func heldBy(ctx context.Context, path string, err error) *HeldError {
	held := &HeldError{Path: path, Replaced: errors.Is(err, errReplaced)}
	var shared *sharedError
	if errors.As(err, &shared) {
		held.Owner, held.Sharers = shared.sharers[0], shared.sharers
	} else {
		held.Owner = readOwner(ctx, path)
	}
	return held
}

// isSelf reports whether this process is a holder of the lock: it would wait for itself.
// A process in another container may have the same host name and pid, so isSelf also
// checks that this process has the file open that the record names.
func isSelf(r Request) bool {
	return slices.ContainsFunc(append(seats(r.Path), r.Path), func(path string) bool {
		said, ok := readRecord(path)
		return ok && said.PID != 0 && said.PID == r.Owner.PID && said.Host == r.Owner.Host && selfHasOpen(said.File)
	})
}

// try takes the lock once, without waiting. A Holder call elsewhere locks the
// file shared for a moment, so a refused exclusive lock proves nothing: the lock
// is held only if a shared lock is refused too, or if a seat says that it is shared.
func try(ctx context.Context, path string) (*os.File, error) {
	file, err := open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	err = lockExclusive(file)
	if errors.Is(err, errHeld) {
		if err = lockShared(file); err == nil {
			err = errors.Join(whyNotExclusive(ctx, path), unlock(file))
		}
	} else if err == nil && !isAt(file, path) {
		// The path names another file now: the next process locks that one.
		err = errors.Join(errLooked, unlock(file))
	} else if err == nil {
		if err = checkReplaced(ctx, file, path); err != nil {
			err = errors.Join(err, unlock(file))
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// open opens a lock file. Anything else under its name is refused: a pipe would
// make a look wait for ever, and a folder may be locked and keeps nobody away.
func open(path string, flag int) (*os.File, error) {
	if err := atomicfile.CheckRegular(path); err != nil {
		return nil, fmt.Errorf("%w: move it aside", err)
	}
	return os.OpenFile(path, flag, 0o600)
}

// isAt reports whether path still names file.
func isAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(mine, named)
}

// recordOwner writes the record of a lock that was taken.
func recordOwner(_ context.Context, file *os.File, r Request) (*Lock, error) {
	l := &Lock{file: file, path: r.Path}
	if err := l.write(r.Owner); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", r.Path, err), l.Release())
	}
	return l, nil
}

// Release frees the lock and removes its own record; the lock file stays. The
// lock is free afterwards even if Release fails to remove the record.
func (l *Lock) Release() error {
	if l.seat != nil {
		return l.releaseShare()
	}
	// The record goes first: the next holder writes its own.
	err := errors.Join(l.removeRecord(), unlock(l.file), l.file.Close())
	if err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// Holder reports whether one process holds the lock alone, and returns its Owner;
// Sharers lists the processes that share a lock. Holder never makes an Acquire fail that
// runs at the same time, and it changes nothing. A lock whose file does not exist is not
// held, unless its holder still has the removed file open. The Owner of a held lock is
// zero if its record cannot be read.
func Holder(ctx context.Context, path string) (owner Owner, held bool, err error) {
	file, err := open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if r, ok := replacedHolder(path); ok {
			return r.Owner, true, nil
		}
		return Owner{}, false, nil
	}
	if err != nil {
		return Owner{}, false, fmt.Errorf("look at lock %s: %w", path, err)
	}
	err = lockShared(file)
	if err == nil {
		held = heldUnderOldFile(file, path)
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

// readOwner returns the Owner in the record of a lock, or the zero Owner if the record
// does not exist or cannot be read. This package only reports that Owner to people, and
// decides nothing by it.
func readOwner(ctx context.Context, path string) Owner {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	for {
		if r, ok := readRecord(path); ok {
			return r.Owner
		}
		if !clock.Pause(ctx, lookEvery) {
			return Owner{}
		}
	}
}

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
