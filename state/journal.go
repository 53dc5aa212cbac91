package state

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// journal is an open state.
type journal struct {
	documents

	lease Lease

	mu       sync.Mutex
	snapshot *Snapshot
	stored   []byte // the snapshot in the store; nil: none yet
	storedIn encoding
	size     int64   // of the journal in the store, in bytes: where its last good line ends
	seq      uint64  // of the last entry; 0: nothing was appended
	defined  tables  // the shared texts that the journal contains
	reader   *reader // it has read every entry; nil: nothing was appended
	broken   error   // why nothing more can be appended
	closed   bool
	alone    bool // the backup is the stored snapshot itself
}

// Snapshot returns a copy of the state with all entries appended so far.
func (j *journal) Snapshot() *Snapshot {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snapshot.clone()
}

// Append makes entries durable, in one write, before it returns. It sets Serial and
// Seq, and At if that is zero. If it fails, none of the entries counts, neither in the store nor in
// the Snapshot.
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
	if err := j.write(text); err != nil {
		if errors.Is(err, ErrUncertain) {
			j.broken = err
		}
		return err
	}
	for _, e := range read {
		j.snapshot.apply(e)
	}
	j.seq += uint64(len(read))
	j.defined = defined
	return nil
}

// encode returns the lines of entries, the entries as a reader decodes them, and the shared texts
// that the journal contains once it has these lines. The snapshot takes the decoded entries, so
// that it equals the file.
func (j *journal) encode(entries []Entry) (text []byte, read []Entry, defined tables, err error) {
	defined = newTables()
	defined.take(j.defined)
	if j.reader == nil {
		j.reader = newReader(j.types(), j.types().shapes())
	}
	for i, e := range entries {
		e.Serial, e.Seq = j.snapshot.Serial, j.seq+uint64(i)+1
		if e.At.IsZero() {
			e.At = j.Now()
		}
		e.At = e.At.UTC()
		if err := e.check(); err != nil {
			return nil, nil, defined, err
		}
		line, body, err := encodeLine(e, defined)
		if err != nil {
			return nil, nil, defined, fmt.Errorf("%s of %s: %w", e.Op, e.Address, err)
		}
		back, err := j.reader.decodeEntry(body)
		if err != nil {
			return nil, nil, defined, fmt.Errorf("%s of %s could not be read back: %w", e.Op, e.Address, err)
		}
		text, read = append(text, line...), append(read, back)
	}
	return text, read, defined, nil
}

// write adds text to the journal, durably or not at all. It writes a snapshot before the first entry
// if there is none in the store, since it names the project to which the journal belongs, or if
// that in the store has another encoding.
func (j *journal) write(text []byte) error {
	if j.seq == 0 && (j.stored == nil || !j.storedIn.equal(j.present())) {
		if err := j.reencode(); err != nil {
			return err
		}
	}
	if err := j.lease.Append(j.name(), j.size, text); err != nil {
		return err
	}
	j.size += int64(len(text))
	return nil
}

// reencode writes the snapshot with the encoding of this build. The entries of the journal continue that, and so they
// have to continue its backup: it gets the same encoding.
func (j *journal) reencode() error {
	first := j.stored == nil
	if err := j.store(j.snapshot); err != nil || first {
		return err
	}
	return j.lease.Put(backupName, j.stored)
}

// name returns the name of the journal's document.
func (j *journal) name() string { return journalName(j.snapshot.Serial) }

// Close writes the snapshot, if entries were appended, and frees the lock. If it fails, the
// journal in the store still holds all entries. A second Close does nothing.
func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	if err := errors.Join(j.finish(), j.lease.Release()); err != nil {
		return fmt.Errorf("close the state: %w", withAdvice(err))
	}
	return nil
}

func (j *journal) finish() error {
	if j.seq == 0 {
		if j.broken != nil { // its entries may be there, and do not count
			return j.lease.Remove(j.name())
		}
		return nil
	}
	serial := j.snapshot.Serial
	if err := j.fold(); err != nil {
		return err
	}
	return j.retire(serial)
}

// fold writes a new snapshot with the appended entries and the next serial. It keeps no copy of a value that became
// sensitive.
func (j *journal) fold() error {
	next := *j.snapshot
	next.Serial++
	store := j.store
	withholds, err := j.withholds(&next)
	if err != nil {
		return err
	}
	if withholds {
		store = j.storeAlone
	}
	if err := store(&next); err != nil {
		return err
	}
	j.snapshot = &next
	return nil
}

// retire puts away a journal that the snapshot contains. The last of them becomes the backup's
// journal: it leads from the backup to the snapshot, unless that is alone.
func (j *journal) retire(serial uint64) error {
	var err error
	if serial+1 == j.snapshot.Serial && !j.alone {
		err = j.lease.Rename(journalName(serial), backupJournalName)
	} else {
		err = j.lease.Remove(journalName(serial))
	}
	if err != nil {
		return fmt.Errorf("put away a journal that the state contains: %w", err)
	}
	return nil
}

// store writes a snapshot, and the one before it as its backup.
func (j *journal) store(s *Snapshot) error {
	data, err := j.encodeSnapshot(s)
	if err != nil {
		return err
	}
	if old := j.formats().older(j.stored); old != 0 {
		if err := j.lease.Put(oldFormatName(old), j.stored); err != nil {
			return err
		}
	}
	if j.stored != nil {
		if err := j.lease.Put(backupName, j.stored); err != nil {
			return err
		}
	}
	if err := j.lease.Put(snapshotName, data); err != nil {
		return err
	}
	j.stored, j.storedIn, j.alone = data, j.present(), false
	return nil
}
