package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
)

// Repair describes the damage of a state and the steps and the result of its repair.
type Repair struct {
	Damage []Damage // none: nothing is wrong
	Steps  []string // the steps of the repair, in words, in order
	Kept   []string // the paths of the copies of damaged documents
	Serial uint64   // of the snapshot after the repair
	// Records counts the records after the repair.
	Records int
}

// Damage is one thing that is wrong.
type Damage struct {
	Path    string
	Line    int // of a journal, from 1; 0: the file as a whole
	Problem string
}

func (d documents) Diagnose(ctx context.Context) (Repair, error) {
	if err := ctx.Err(); err != nil {
		return Repair{}, fmt.Errorf("read the state in %s: %w", d.backend.Where(), err)
	}
	read, _, err := d.read(ctx)
	if err != nil {
		return Repair{}, err
	}
	s, err := d.salvage(ctx, read)
	return s.Repair, err
}

func (d documents) Repair(ctx context.Context, o Owner) (r Repair, err error) {
	lease, err := d.backend.Lock(ctx, o)
	if err != nil {
		return Repair{}, err
	}
	defer func() { err = errors.Join(err, lease.Release()) }()
	read, _, err := d.read(ctx)
	if err != nil {
		return Repair{}, err
	}
	s, err := d.salvage(ctx, read)
	if err != nil || len(s.Damage) == 0 {
		return s.Repair, err
	}
	if err := s.restore(ctx, &journal{documents: d, lease: lease, stored: s.whole}); err != nil {
		return s.Repair, fmt.Errorf("repair the state: %w", withAdvice(err))
	}
	for _, old := range read.journals {
		if err := lease.Remove(old.name); err != nil {
			return s.Repair, fmt.Errorf("remove a journal that the state contains: %w", err)
		}
	}
	return s.Repair, lease.Remove(backupJournalName)
}

// restore copies the damaged documents and writes the salvaged state. If restore is cut short, the
// state is as damaged as before, or whole.
func (s *salvage) restore(ctx context.Context, j *journal) error {
	for i, name := range s.damaged {
		data, err := j.backend.Get(ctx, name)
		if err != nil {
			return fmt.Errorf("keep a copy of the damaged document: %w", err)
		}
		if err := j.lease.Put(s.copies[i], data); err != nil {
			return err
		}
	}
	if err := j.store(s.snapshot); err != nil {
		return err
	}
	// The older backup lacks the entries of the journals that go now.
	return j.lease.Put(backupName, j.stored)
}

// salvage holds the readable part of a state, and the repair of the rest.
type salvage struct {
	Repair
	snapshot *Snapshot
	whole    []byte   // the bytes of state.json, if it can be read: they become the backup
	isBackup bool     // snapshot is the backup
	names    []string // of all documents
	damaged  []string // the names of the damaged documents
	copies   []string // the names of their copies
}

// salvage reads the readable part of a state.
func (d documents) salvage(ctx context.Context, read content) (s salvage, err error) {
	if s.names, err = d.backend.List(ctx); err != nil {
		return s, err
	}
	in, err := s.begin(ctx, d, read)
	if err != nil {
		return s, err
	}
	if err := d.writable(s.snapshot, in); err != nil {
		return s, err
	}
	if s.isBackup {
		if err := s.replayBackup(ctx, d, in); err != nil {
			return s, err
		}
	}
	for _, j := range read.journals {
		if j.serial >= s.snapshot.Serial {
			s.replay(d, j, in)
		}
	}
	for _, j := range read.journals {
		s.snapshot.Serial = max(s.snapshot.Serial, j.serial)
	}
	if len(s.Damage) > 0 {
		s.snapshot.Serial++
	}
	if slices.Contains(s.damaged, snapshotName) { // the damaged snapshot had a serial too
		s.snapshot.Serial++
	}
	s.Serial, s.Records = s.snapshot.Serial, len(s.snapshot.Records)
	return s, nil
}

// begin finds the last snapshot that is whole, and returns how it was written.
func (s *salvage) begin(ctx context.Context, d documents, read content) (encoding, error) {
	var damage error
	if read.snapshot != nil {
		snapshot, in, err := d.decodeSnapshot(read.snapshot)
		if err == nil {
			s.snapshot, s.whole = snapshot, read.snapshot
			return in, nil
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			return encoding{}, err
		}
		damage = corrupt.Err
		s.keep(d, snapshotName)
	}
	backup, err := d.backend.Get(ctx, backupName)
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		return encoding{}, fmt.Errorf("read the backup snapshot: %w", err)
	}
	if read.snapshot == nil {
		if len(read.journals) == 0 && none {
			s.snapshot = d.empty()
			return d.present(), nil
		}
		damage = errors.New("it does not exist")
	}
	s.Damage = append(s.Damage, Damage{Path: d.backend.Path(snapshotName), Problem: damage.Error()})
	if none {
		return s.empty(d), nil
	}
	snapshot, in, err := d.decodeSnapshot(backup)
	var corrupt *CorruptError
	switch {
	case err == nil:
		s.snapshot = snapshot
		s.Steps = append(s.Steps, fmt.Sprintf("go back to snapshot %d, %s", s.snapshot.Serial, d.backend.Path(backupName)))
		s.isBackup = true
		return in, nil
	case errors.As(err, &corrupt):
		s.Damage = append(s.Damage, Damage{Path: d.backend.Path(backupName), Problem: corrupt.Err.Error()})
		s.keep(d, backupName)
		return s.empty(d), nil
	default:
		return encoding{}, err
	}
}

// replayBackup applies the journal that leads from the backup to the snapshot that is lost. A
// journal that continues another snapshot does not count.
func (s *salvage) replayBackup(ctx context.Context, d documents, in encoding) error {
	data, err := d.backend.Get(ctx, backupJournalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the journal of the backup snapshot: %w", err)
	}
	j := journalText{serial: s.snapshot.Serial, data: data, name: backupJournalName}
	if entries, _, err := d.decodeJournal(j, in); err != nil && len(entries) == 0 {
		return nil
	}
	s.replay(d, j, in)
	s.snapshot.Serial++
	return nil
}

func (s *salvage) empty(d documents) encoding {
	s.snapshot = d.empty()
	s.Steps = append(s.Steps, "start without records: no snapshot can be read")
	return d.present()
}

// replay applies a journal as far as it can be understood. The journal may continue a
// lost snapshot: its entries hold whole records, so they are valid on an older
// snapshot too.
func (s *salvage) replay(d documents, j journalText, in encoding) {
	path := d.backend.Path(j.name)
	if j.serial > s.snapshot.Serial {
		problem := fmt.Sprintf("it continues snapshot %d, which is lost", j.serial)
		s.Damage = append(s.Damage, Damage{Path: path, Problem: problem})
	}
	entries, torn, err := d.decodeJournal(j, in)
	for _, e := range entries {
		s.snapshot.apply(e)
	}
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt):
		s.Damage = append(s.Damage, Damage{Path: path, Line: corrupt.Line, Problem: corrupt.Err.Error()})
		s.keep(d, j.name)
		s.Steps = append(s.Steps, fmt.Sprintf("apply the %d lines of %s before that, and drop the rest", len(entries), path))
	case torn != "":
		s.Damage = append(s.Damage, Damage{Path: path, Line: len(entries) + 1, Problem: "the last line was not written whole"})
		s.Steps = append(s.Steps, fmt.Sprintf("drop that line, on which no step relied, and apply the %d before it", len(entries)))
	case len(s.Damage) > 0:
		s.Steps = append(s.Steps, fmt.Sprintf("apply all %d lines of %s", len(entries), path))
	}
}

// keep plans a copy of a damaged document, under a name that is free.
func (s *salvage) keep(d documents, name string) {
	kept := name + ".corrupt"
	for n := 2; slices.Contains(s.names, kept); n++ {
		kept = name + ".corrupt." + strconv.Itoa(n)
	}
	s.names = append(s.names, kept)
	s.damaged, s.copies, s.Kept = append(s.damaged, name), append(s.copies, kept), append(s.Kept, d.backend.Path(kept))
	s.Steps = append(s.Steps, "keep a copy of it: "+kept)
}
