package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/lockfile"
)

// Folder is a Store in a data directory: state.json, the snapshot before it as
// state.json.backup, the journal that continues it as journal-<serial>.ndjson,
// and the run lock. Files are 0600, the folder is made 0700 by the first Open.
type Folder struct {
	Dir     string           // absolute
	ID      string           // the lineage: a state of another one is a *MismatchError
	Project string           // for people
	Version string           // of vmctl, for whoever has to read the files later
	Now     func() time.Time // dates of entries and locks; required by Open
	// RepairWith is the command line that errors suggest for repairing the state.
	// "": vmctl state repair.
	RepairWith string

	knownTypes      types   // set by a test; nil: those of the spec
	readableFormats formats // set by a test; zero: the formats of this build
	betweenReads    func()  // set by a test: called between reading the snapshot and reading the journals; nil: nothing
}

var _ Store = Folder{}

// Read returns the snapshot with the journal that continues it. It takes no lock
// and changes nothing, and it may run beside a writer: it sees the state as it
// was at one moment. A folder without a state is an empty snapshot.
//
// Read never takes a state that it cannot understand for an empty one: it fails with
// a *CorruptError, a *NewerError or a *MismatchError, and leaves the files untouched.
func (f Folder) Read(ctx context.Context) (*Snapshot, error) {
	s, err := f.read(ctx)
	if err != nil || len(s.Notes) == 0 {
		return s, err
	}
	// An incomplete last line is torn, or a writer is still writing it.
	_, held, err := f.Holder(ctx)
	if err != nil {
		return nil, err
	}
	if held {
		s.Notes = nil
		return s, nil
	}
	return f.read(ctx)
}

// read reads the files again if a writer has replaced the snapshot meanwhile: the new
// snapshot contains the journal's entries.
func (f Folder) read(ctx context.Context) (*Snapshot, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read the state in %s: %w", f.Dir, err)
		}
		files, stable, err := f.readFiles()
		if err != nil {
			return nil, err
		}
		if stable {
			return f.decode(files)
		}
	}
}

// Holder reports whether the run lock is held, and returns its holder. It takes no lock and
// disturbs nobody. The Holder of a held lock is zero where its record cannot be
// read.
func (f Folder) Holder(ctx context.Context) (h Holder, held bool, err error) {
	owner, held, err := lockfile.Holder(ctx, f.lockPath())
	return Holder(owner), held, err
}

// Open takes the run lock, waiting as long as o says, and returns a journal that
// continues the snapshot. What an earlier run left in its journal becomes a new
// snapshot first. It fails as Read does, and with a *LockedError.
func (f Folder) Open(ctx context.Context, o Owner) (Journal, error) {
	lock, err := f.lock(ctx, o)
	if o.UseReserve && IsFull(err) {
		if spent, gone := f.FreeReserve(); spent || gone != nil {
			if lock, err = nil, gone; err == nil {
				lock, err = f.lock(ctx, o)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	j, err := f.open(lock)
	if err != nil {
		return nil, errors.Join(withAdvice(err), lock.Release())
	}
	return j, nil
}

func (f Folder) lock(ctx context.Context, o Owner) (*lockfile.Lock, error) {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", withAdvice(err))
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("take the run lock: %w", err)
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{
		Path:  f.lockPath(),
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: o.Command, Since: f.Now().UTC()},
		Wait:  o.Wait,
		Waiting: func(owner lockfile.Owner) {
			if o.Waiting != nil {
				o.Waiting(Holder(owner))
			}
		},
	})
	var held *lockfile.HeldError
	if errors.As(err, &held) && ctx.Err() == nil {
		return nil, &LockedError{Dir: f.Dir, Holder: Holder(held.Owner), Replaced: held.Replaced, Self: held.Self}
	}
	if err != nil {
		return nil, fmt.Errorf("take the run lock: %w", withAdvice(err))
	}
	return lock, nil
}

// open reads the files under the lock and folds the journal into the snapshot.
func (f Folder) open(lock *lockfile.Lock) (*journal, error) {
	if err := f.clean(); err != nil {
		return nil, err
	}
	files, _, err := f.readFiles()
	if err != nil {
		return nil, err
	}
	s, err := f.decode(files)
	if err != nil {
		return nil, err
	}
	j := &journal{folder: f, lock: lock, snapshot: s, stored: files.snapshot, defined: newTables()}
	if files.has(s.Serial) {
		if err := j.fold(); err != nil {
			return nil, err
		}
	}
	return j, f.retireJournals(j.snapshot.Serial)
}

// clean removes the temporary files that killed writers left behind.
func (f Folder) clean() error {
	for _, path := range []string{f.statePath(), f.backupPath()} {
		target, err := resolveLink(path)
		if err != nil && path == f.statePath() {
			continue // reading the snapshot reports this error
		}
		if err != nil {
			return err
		}
		if err := atomicfile.Clean(target); err != nil {
			return err
		}
	}
	return nil
}

func (f Folder) oldFormatPath(format int) string {
	return filepath.Join(f.Dir, fmt.Sprintf("state.json.v%d", format))
}

func (f Folder) statePath() string  { return filepath.Join(f.Dir, "state.json") }
func (f Folder) backupPath() string { return filepath.Join(f.Dir, "state.json.backup") }
func (f Folder) lockPath() string   { return filepath.Join(f.Dir, "lock") }

// backupJournalPath names the journal that leads from the backup to the snapshot.
func (f Folder) backupJournalPath() string { return filepath.Join(f.Dir, "journal.ndjson.backup") }

func (f Folder) journalPath(serial uint64) string {
	return filepath.Join(f.Dir, journalName(serial))
}

// reserveFile is the name of a file without content of use: it reserves disk space. vmctl frees
// the space when the disk is full and the user stops or destroys something, since that needs room
// for locks and a journal.
const reserveFile = "reserve"

// reserveBytes is the size of the reserved space: enough for the journal of some hundred steps and
// for the snapshot into which it is folded.
const reserveBytes = 256 << 10

// Reserve reserves the disk space if it is not reserved yet. A disk that is too full for it is no
// error.
func (f Folder) Reserve() error {
	path := filepath.Join(f.Dir, reserveFile)
	if info, err := os.Stat(path); err == nil && info.Size() >= reserveBytes {
		return nil
	}
	content := make([]byte, reserveBytes)
	// A file system may leave out zeros, or pack what repeats itself.
	if _, err := rand.NewChaCha8([32]byte{}).Read(content); err != nil {
		return fmt.Errorf("reserve room in the data directory: %w", err)
	}
	if err := errors.Join(atomicfile.Clean(path), atomicfile.Write(path, content, 0o600)); !IsFull(err) {
		return err
	}
	return atomicfile.Clean(path)
}

// FreeReserve frees the reserved space, and reports whether there was any.
func (f Folder) FreeReserve() (bool, error) {
	err := os.Remove(filepath.Join(f.Dir, reserveFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
