package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
)

// journal is the open state of a Folder. Its methods may be called from several
// goroutines.
type journal struct {
	folder Folder
	lock   *lockfile.Lock

	mu       sync.Mutex
	snapshot *Snapshot
	stored   []byte   // what state.json holds; nil: nothing yet
	file     *os.File // nil: nothing was appended
	size     int64    // of file: where its last good line ends
	seq      uint64   // of the last entry
	defined  tables   // the shared texts that file contains
	broken   error    // why nothing more can be appended
	closed   bool
}

// Snapshot returns a copy of the state with all entries appended so far.
func (j *journal) Snapshot() *Snapshot {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snapshot.clone()
}

// Append makes entries durable, in one write and one fsync, before it returns. It sets Serial and
// Seq, and At if that is zero. If it fails, none of the entries counts, neither on disk nor in the
// Snapshot.
//
// An ended context does not stop it: the results of steps are recorded also after the run was
// cancelled.
func (j *journal) Append(_ context.Context, entries ...Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.append(entries); err != nil {
		return fmt.Errorf("write the journal: %w", withAdvice(err))
	}
	return nil
}

func (j *journal) append(entries []Entry) error {
	switch {
	case j.closed:
		return errors.New("the journal is closed")
	case j.broken != nil:
		return fmt.Errorf("an earlier entry could not be written: %w", j.broken)
	case len(entries) == 0:
		return nil
	}
	text, read, defined, err := j.encode(entries)
	if err != nil {
		return err
	}
	if err := j.checkLock(); err != nil {
		return err
	}
	if err := j.create(); err != nil {
		return err
	}
	if err := j.write(text); err != nil {
		return err
	}
	for _, e := range read {
		j.snapshot.apply(e)
	}
	j.seq += uint64(len(read))
	j.defined = defined
	return nil
}

// checkLock fails if the lock excludes no other process any more. A process that took the lock
// meanwhile has read the journal up to that moment, and would lose later entries.
func (j *journal) checkLock() error {
	err := j.lock.Check()
	var lost *lockfile.LostError
	if errors.As(err, &lost) {
		return &LostLockError{Path: lost.Path, Holder: Holder(lost.Owner)}
	}
	return err
}

// encode returns the lines of entries, the entries as a reader decodes them, and the shared texts
// that the journal contains once it has these lines. The snapshot takes the decoded entries, so
// that it equals the file.
func (j *journal) encode(entries []Entry) (text []byte, read []Entry, defined tables, err error) {
	defined = newTables()
	defined.take(j.defined)
	r := newReader(j.folder.types())
	r.take(j.defined)
	for i, e := range entries {
		e.Serial, e.Seq = j.snapshot.Serial, j.seq+uint64(i)+1
		if e.At.IsZero() {
			e.At = j.folder.Now()
		}
		e.At = e.At.UTC()
		if err := e.check(); err != nil {
			return nil, nil, defined, err
		}
		line, err := encodeLine(e, defined)
		if err != nil {
			return nil, nil, defined, fmt.Errorf("%s of %s: %w", e.Op, e.Address, err)
		}
		back, err := r.decodeLine(line, noUpgrade)
		if err != nil {
			return nil, nil, defined, fmt.Errorf("%s of %s could not be read back: %w", e.Op, e.Address, err)
		}
		text, read = append(text, line...), append(read, back)
	}
	return text, read, defined, nil
}

// create makes the journal's file, once. It writes a snapshot first if there is none on disk: the
// snapshot names the project to which the journal belongs.
func (j *journal) create() error {
	if j.file != nil {
		return nil
	}
	if j.stored == nil || j.folder.formats().older(j.stored) != 0 {
		if err := j.store(j.snapshot); err != nil {
			return err
		}
	}
	path := j.folder.journalPath(j.snapshot.Serial)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := atomicfile.SyncDir(j.folder.Dir); err != nil {
		return errors.Join(err, file.Close(), os.Remove(path))
	}
	j.file = file
	return nil
}

// write adds text durably or not at all.
func (j *journal) write(text []byte) error {
	_, err := j.file.WriteAt(text, j.size)
	if err == nil {
		if err = j.file.Sync(); err != nil {
			// What is durable after a failed fsync cannot be known any more.
			j.broken = err
		}
	}
	if err == nil {
		j.size += int64(len(text))
		return nil
	}
	if truncateErr := j.file.Truncate(j.size); truncateErr != nil {
		// Half a line at the end is dropped by readers; in the middle it is not.
		j.broken = err
		err = errors.Join(err, truncateErr)
	}
	return err
}

// Close writes the snapshot, if entries were appended, and frees the lock. If it fails, the
// journal on disk still holds all entries. A second Close does nothing.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if err := errors.Join(j.finish(), j.lock.Release()); err != nil {
		return fmt.Errorf("close the state: %w", withAdvice(err))
	}
	return nil
}

func (j *journal) finish() error {
	if j.file == nil {
		return nil
	}
	if err := j.file.Close(); err != nil {
		return err
	}
	if err := j.checkLock(); err != nil {
		return err
	}
	if j.seq == 0 {
		return os.Remove(j.file.Name())
	}
	if err := j.fold(); err != nil {
		return err
	}
	return j.folder.retireJournals(j.snapshot.Serial)
}

// fold writes a new snapshot with the appended entries and the next serial.
func (j *journal) fold() error {
	next := *j.snapshot
	next.Serial++
	if err := j.store(&next); err != nil {
		return err
	}
	j.snapshot = &next
	return nil
}

// store writes a snapshot, and the one before it as its backup.
func (j *journal) store(s *Snapshot) error {
	data, err := j.folder.encodeSnapshot(s)
	if err != nil {
		return err
	}
	if old := j.folder.formats().older(j.stored); old != 0 {
		if err := atomicfile.Write(j.folder.oldFormatPath(old), j.stored, 0o600); err != nil {
			return err
		}
	}
	if j.stored != nil {
		if err := rewrite(j.folder.backupPath(), j.stored); err != nil {
			return err
		}
	}
	if err := rewrite(j.folder.statePath(), data); err != nil {
		return err
	}
	j.stored = data
	return nil
}
