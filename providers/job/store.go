package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/atomicfile"
	"vmctl/internal/gitx"
	"vmctl/internal/lockfile"
)

// Store keeps the records of jobs, each in a folder of its own together with the output of its run.
type Store struct {
	Dir   string // absolute; it need not exist
	Owner lockfile.Owner
	Git   gitx.Runner // on this host; nil: nobody looks at what jobs change, and a copy in which one may have changed something stays
	// Before is called before each look at a record and each change of one, without its lock: whoever orders the steps of several
	// processes waits there. nil: nobody does.
	Before func()
}

// The names of the files of a job.
const (
	recordFile  = "record.json"
	lockFile    = "lock"
	promptFile  = "prompt"
	environFile = "environ"
	tempFolder  = "tmp"
	copyFolder  = "copy"
	baseFolder  = "base"      // of what is remembered of the copy, where its job has no business
	copyLock    = "copy.lock" // held while what a job changed in its copy is being kept
	patchFile   = "patch"
	editsFile   = "edits"
)

// lockWait limits the wait of a writer for another: each holds the lock for one write.
const lockWait = 10 * time.Second

// NotFoundError reports that there is no job of that ID.
type NotFoundError struct{ ID ID }

// Error names the ID.
func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no job %s", e.ID) }

// UnreadableError reports a record that cannot be read. It is left as it is.
type UnreadableError struct {
	ID   ID
	Path string
	Code string // read_failed | bad_state
	Err  error
}

// Error names the file and the cause.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("read job %s (%s): %v", e.ID, e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Err }

// ConflictError reports that a record was written since it was read.
type ConflictError struct {
	ID         ID
	Want, Have int64
}

// Error gives both revisions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("job %s has changed: revision %d was read, %d is there now", e.ID, e.Want, e.Have)
}

// Path returns the path of a file of a job, or with an empty name of its folder. It is the only place
// that makes a path of an ID, which Create and Read have checked.
func (s Store) Path(id ID, name string) string { return filepath.Join(s.Dir, string(id), name) }

// PatchPath returns the path of the patch of what a job changed in its copy: see Record.Patch.
func (s Store) PatchPath(id ID) string { return s.Path(id, patchFile) }

// Create writes the record of a new job, with revision 1. If that fails, the record returned has revision 0.
func (s Store) Create(r Record) (Record, error) {
	if err := r.ID.Check(); err != nil {
		return Record{}, err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return Record{}, err
	}
	if err := os.Mkdir(s.Path(r.ID, ""), 0o700); err != nil {
		return Record{}, err
	}
	r.FormatVersion, r.Revision, r.Status = FormatVersion, 1, Queued
	if err := s.write(r); err != nil {
		r.Revision = 0
		return r, errors.Join(err, os.RemoveAll(s.Path(r.ID, "")))
	}
	return r, nil
}

// Read returns a record, and takes no lock.
func (s Store) Read(id ID) (Record, error) {
	s.before()
	return s.read(id)
}

func (s Store) before() {
	if s.Before != nil {
		s.Before()
	}
}

func (s Store) read(id ID) (Record, error) {
	if err := id.Check(); err != nil {
		return Record{}, err
	}
	path := s.Path(id, recordFile)
	data, err := atomicfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Record{}, &NotFoundError{ID: id}
	case err != nil:
		return Record{}, &UnreadableError{ID: id, Path: path, Code: "read_failed", Err: err}
	}
	r, err := decode(data)
	if err == nil && r.ID != id {
		err = fmt.Errorf("it is the record of job %q", string(r.ID))
	}
	if err != nil {
		return Record{}, &UnreadableError{ID: id, Path: path, Code: "bad_state", Err: err}
	}
	return r, nil
}

// decode reads a record strictly: what this version does not know, it does not guess.
func decode(data []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	switch {
	case r.FormatVersion < 1 || r.FormatVersion > FormatVersion:
		return r, fmt.Errorf("format version %d is not known here", r.FormatVersion)
	case !slices.Contains([]Containment{"", Uncontained, InCopy}, r.Containment):
		return r, fmt.Errorf("containment %q is not known here", string(r.Containment))
	case !slices.Contains([]Scope{"", WorkingTree, Staged, BranchDiff, Head}, r.Scope):
		return r, fmt.Errorf("scope %q is not known here", string(r.Scope))
	case !slices.Contains(Statuses(), r.Status):
		return r, fmt.Errorf("status %q is not known here", string(r.Status))
	}
	r.FormatVersion = FormatVersion
	return r, nil
}

// List returns all records, the oldest first, and the errors of those that cannot be read.
func (s Store) List() (all []Record, unread []error, err error) {
	s.before()
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		r, err := s.read(ID(e.Name()))
		var none *NotFoundError
		switch {
		case errors.As(err, &none), !e.IsDir():
		case err != nil:
			unread = append(unread, err)
		default:
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Record) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return all, unread, nil
}

// Update changes a record under its lock and returns it as it is afterwards. If change fails,
// nothing is written.
func (s Store) Update(ctx context.Context, id ID, change func(*Record) error) (Record, error) {
	return s.commit(ctx, id, 0, change)
}

// Commit is Update for a decision that was taken on a record read before: it fails with a
// *ConflictError if the record has another revision by now.
func (s Store) Commit(ctx context.Context, id ID, revision int64, change func(*Record) error) (Record, error) {
	return s.commit(ctx, id, revision, change)
}

func (s Store) commit(ctx context.Context, id ID, revision int64, change func(*Record) error) (r Record, err error) {
	s.before()
	if r, err = s.read(id); err != nil {
		return r, err // and no lock is made for a job that is not there
	}
	lock, err := lockfile.Acquire(ctx, lockfile.Request{Path: s.Path(id, lockFile), Owner: s.Owner, Wait: lockWait})
	if err != nil {
		return r, fmt.Errorf("write job %s: %w", id, err)
	}
	r, err = s.change(id, revision, change)
	// The write is what counts: whoever removes the job now removes its lock too.
	if unlocked := lock.Release(); unlocked != nil && !errors.Is(unlocked, fs.ErrNotExist) {
		err = errors.Join(err, unlocked)
	}
	return r, err
}

func (s Store) change(id ID, revision int64, change func(*Record) error) (Record, error) {
	r, err := s.read(id)
	if err != nil {
		return r, err
	}
	if revision != 0 && r.Revision != revision {
		return r, &ConflictError{ID: id, Want: revision, Have: r.Revision}
	}
	was := r
	if err := Apply(&r, change); err != nil || r.Revision == was.Revision {
		return was, err
	}
	if r.Status.IsTerminal() {
		left, stays := s.dropPrivate(r)
		for _, warning := range append(s.dropHandoff(id), stays...) {
			if !slices.Contains(r.Warnings, warning) { // it may be told again
				r.Warnings = append(r.Warnings, warning)
			}
		}
		r.LeftCopy = left
	}
	return r, s.write(r)
}

// Apply makes a change to a record, and refuses a transition that is none. One that has ended changes in what it says of its
// copy alone. Apply is the only way in which a record changes.
func Apply(r *Record, change func(*Record) error) error {
	next := *r
	if err := change(&next); errors.Is(err, errUnchanged) {
		return nil
	} else if err != nil {
		return err
	}
	if next.Status != r.Status && !r.Status.May(next.Status) || next.Status == r.Status && r.Status.IsTerminal() && !concernsCopy(*r, next) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "make " + string(next.Status)}
	}
	next.Revision, next.ID, next.FormatVersion = r.Revision+1, r.ID, r.FormatVersion
	*r = next
	return nil
}

func (s Store) write(r Record) error {
	for _, list := range []*[]string{&r.Command, &r.Environment, &r.Asked.Pass, &r.Asked.Set, &r.Leftovers, &r.Warnings} {
		if *list == nil {
			*list = []string{}
		}
	}
	if r.Behind == nil {
		r.Behind = []ID{}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(s.Path(r.ID, recordFile), append(data, '\n'), 0o600)
}
