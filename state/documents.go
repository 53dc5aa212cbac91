package state

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// documents is a Store over a Backend. The documents are the snapshot, the snapshot before it, the
// journal that continues the snapshot, the journal that leads from the backup to the snapshot, the
// last snapshot of each older format, and copies of damaged documents.
type documents struct {
	Config

	backend Backend
}

const (
	snapshotName      = "state.json"
	backupName        = "state.json.backup"
	backupJournalName = "journal.ndjson.backup"
)

func oldFormatName(format int) string { return fmt.Sprintf("%s.v%d", snapshotName, format) }

func journalName(serial uint64) string {
	return "journal-" + strconv.FormatUint(serial, 10) + ".ndjson"
}

// parseJournalName accepts only names that journalName makes.
func parseJournalName(name string) (serial uint64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, "journal-"), ".ndjson")
	serial, err := strconv.ParseUint(digits, 10, 64)
	return serial, err == nil && journalName(serial) == name
}

// content holds the bytes of the snapshot and of the journals.
type content struct {
	snapshot []byte // nil: there is none
	journals []journalText
}

type journalText struct {
	serial uint64
	data   []byte
	name   string // of the document
}

func (c content) hasJournal(serial uint64) bool {
	return slices.ContainsFunc(c.journals, func(j journalText) bool { return j.serial == serial })
}

func (d documents) Read(ctx context.Context) (*Snapshot, error) {
	s, err := d.load(ctx)
	if err != nil || len(s.Notes) == 0 {
		return s, err
	}
	// An incomplete last line is torn, or a writer is still writing it.
	holder, err := d.Holder(ctx)
	if err != nil {
		return nil, err
	}
	if holder != nil {
		s.Notes = nil
		return s, nil
	}
	return d.load(ctx)
}

// load reads the documents again if a writer has replaced the snapshot meanwhile: the new
// snapshot contains the journal's entries.
func (d documents) load(ctx context.Context) (*Snapshot, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read the state in %s: %w", d.backend.Where(), err)
		}
		read, stable, err := d.read(ctx)
		if err != nil {
			return nil, err
		}
		if stable {
			s, _, err := d.decode(read)
			return s, d.withBackup(ctx, err)
		}
	}
}

// read reads the snapshot and the journals. The result is stable if the snapshot was the same
// before and after: a writer replaces the snapshot before it removes the journal, so a stable
// snapshot and its journals belong together.
func (d documents) read(ctx context.Context) (read content, stable bool, err error) {
	if read.snapshot, err = d.readSnapshot(ctx); err != nil {
		return content{}, false, err
	}
	if read.journals, err = d.readJournals(ctx); err != nil {
		return content{}, false, err
	}
	again, err := d.readSnapshot(ctx)
	if err != nil {
		return content{}, false, err
	}
	same := (again == nil) == (read.snapshot == nil) && bytes.Equal(again, read.snapshot)
	return read, same, nil
}

// readSnapshot returns the bytes of the snapshot. Without an error they are nil only if there is
// none.
func (d documents) readSnapshot(ctx context.Context) ([]byte, error) {
	data, err := d.backend.Get(ctx, snapshotName)
	var unfit *unfitError
	switch {
	case err == nil && data == nil:
		return []byte{}, nil
	case err == nil:
		return data, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.As(err, &unfit):
		return nil, d.withBackup(ctx, &CorruptError{Path: d.backend.Path(snapshotName), Err: unfit.cause}) // no command moves it away
	default:
		return nil, fmt.Errorf("read the state: %w; nothing was changed", err)
	}
}

// readJournals reads every journal, oldest first.
func (d documents) readJournals(ctx context.Context) ([]journalText, error) {
	serials, err := d.journalSerials(ctx)
	if err != nil {
		return nil, err
	}
	var journals []journalText
	for _, serial := range serials {
		name := journalName(serial)
		data, err := d.backend.Get(ctx, name)
		var unfit *unfitError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.As(err, &unfit):
			return nil, &CorruptError{Path: d.backend.Path(name), Err: unfit.cause}
		case err != nil:
			return nil, fmt.Errorf("read the journal: %w; nothing was changed", err)
		}
		journals = append(journals, journalText{serial: serial, data: data, name: name})
	}
	return journals, nil
}

func (d documents) journalSerials(ctx context.Context) ([]uint64, error) {
	names, err := d.backend.List(ctx)
	if err != nil {
		return nil, err
	}
	var serials []uint64
	for _, name := range names {
		if serial, ok := parseJournalName(name); ok {
			serials = append(serials, serial)
		}
	}
	slices.Sort(serials)
	return serials, nil
}

// withBackup adds the backup to an error about the snapshot, if there is a backup.
func (d documents) withBackup(ctx context.Context, err error) error {
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Path != d.backend.Path(snapshotName) {
		return err
	}
	if _, missing := d.backend.Get(ctx, backupName); missing == nil {
		corrupt.Backup = d.backend.Path(backupName)
	}
	return err
}

// corrupt adds the command that repairs the state.
func (d documents) corrupt(e CorruptError) *CorruptError {
	e.repair = cmp.Or(d.RepairWith, "vmctl state repair")
	return &e
}

func (d documents) Holder(ctx context.Context) (*Holder, error) { return d.backend.Holder(ctx) }

func (d documents) Open(ctx context.Context, o Owner) (Journal, error) {
	lease, err := d.backend.Lock(ctx, o)
	if err != nil {
		return nil, err
	}
	j, err := d.open(ctx, lease)
	if err != nil {
		return nil, errors.Join(withAdvice(err), lease.Release())
	}
	return j, nil
}

// open reads the documents under the lease and folds the journal into the snapshot.
func (d documents) open(ctx context.Context, lease Lease) (*journal, error) {
	read, _, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	s, in, err := d.decode(read)
	if err != nil {
		return nil, d.withBackup(ctx, err)
	}
	if err := d.writable(s, in); err != nil {
		return nil, err
	}
	j := &journal{documents: d, lease: lease, snapshot: s, stored: read.snapshot, storedIn: in, defined: newTables()}
	if read.hasJournal(s.Serial) {
		if err := j.fold(); err != nil {
			return nil, err
		}
	} else if len(read.journals) > 0 { // the run that contained them in the snapshot was killed
		j.alone = d.isAlone(ctx, s)
	}
	for _, old := range read.journals {
		if old.serial < j.snapshot.Serial {
			if err := j.retire(old.serial); err != nil {
				return nil, err
			}
		}
	}
	return j, nil
}
