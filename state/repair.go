package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"vmctl/internal/atomicfile"
)

// Repair describes the damage of a state and the steps and the result of its repair.
type Repair struct {
	Damage []Damage // none: nothing is wrong
	Steps  []string // the steps of the repair, in words, in order
	Kept   []string // the names of the copies of damaged files
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

// Diagnose returns the Repair that Repair would carry out. It takes no lock and changes nothing.
func (f Folder) Diagnose(ctx context.Context) (Repair, error) {
	if err := ctx.Err(); err != nil {
		return Repair{}, fmt.Errorf("read the state in %s: %w", f.Dir, err)
	}
	files, _, err := f.readFiles()
	if err != nil {
		return Repair{}, err
	}
	s, err := f.salvage(files)
	return s.Repair, err
}

// Repair makes a damaged state readable: it takes the last whole snapshot and applies
// each journal up to its damage. Repair first copies each file that is damaged. Only a
// torn last line, on which nobody relied, is dropped without a copy. The result has a
// serial of its own. A whole state is left as it is. A state of a newer vmctl or of
// another project is an error, as it is to Read.
func (f Folder) Repair(ctx context.Context, o Owner) (r Repair, err error) {
	lock, err := f.lock(ctx, o)
	if err != nil {
		return Repair{}, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := f.clean(); err != nil {
		return Repair{}, err
	}
	files, _, err := f.readFiles()
	if err != nil {
		return Repair{}, err
	}
	s, err := f.salvage(files)
	if err != nil || len(s.Damage) == 0 {
		return s.Repair, err
	}
	return s.Repair, f.restore(s, &journal{folder: f, lock: lock, stored: s.whole})
}

// restore writes the salvaged state. If restore is cut short, the state is as damaged
// as before, or whole.
func (f Folder) restore(s salvage, j *journal) error {
	for i, path := range s.damaged {
		data, err := atomicfile.Read(path)
		if err != nil {
			return fmt.Errorf("keep a copy of the damaged file: %w", err)
		}
		if err := atomicfile.Clean(s.Kept[i]); err != nil {
			return err
		}
		if err := atomicfile.Write(s.Kept[i], data, 0o600); err != nil {
			return fmt.Errorf("repair the state: %w", withAdvice(err))
		}
	}
	if err := j.store(s.snapshot); err != nil {
		return fmt.Errorf("repair the state: %w", withAdvice(err))
	}
	return f.removeJournals(s.snapshot.Serial)
}

// salvage holds the readable part of a state, and the repair of the rest.
type salvage struct {
	Repair
	snapshot *Snapshot
	whole    []byte   // the bytes of state.json, if it can be read: they become the backup
	isBackup bool     // snapshot is the backup
	damaged  []string // the damaged files, in the order of their copies in Kept
}

// salvage reads the readable part of a state.
func (f Folder) salvage(read files) (salvage, error) {
	s := salvage{}
	format, err := s.begin(f, read)
	if err != nil {
		return s, err
	}
	if s.isBackup {
		if err := s.replayBackup(f, format); err != nil {
			return s, err
		}
	}
	for _, j := range read.journals {
		if j.serial >= s.snapshot.Serial {
			s.replay(f, j, format)
		}
	}
	for _, j := range read.journals {
		s.snapshot.Serial = max(s.snapshot.Serial, j.serial)
	}
	if len(s.Damage) > 0 {
		s.snapshot.Serial++
	}
	if slices.Contains(s.damaged, f.statePath()) { // the damaged snapshot had a serial too
		s.snapshot.Serial++
	}
	s.Serial, s.Records = s.snapshot.Serial, len(s.snapshot.Records)
	return s, nil
}

// begin finds the last snapshot that is whole, and returns its format.
func (s *salvage) begin(f Folder, read files) (int, error) {
	var damage error
	if read.snapshot != nil {
		snapshot, err := f.decodeSnapshot(read.snapshot)
		if err == nil {
			s.snapshot, s.whole = snapshot, read.snapshot
			return f.formatOf(read.snapshot), nil
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			return 0, err
		}
		damage = corrupt.Err
		s.keep(f.statePath())
	}
	backup, err := atomicfile.Read(f.backupPath())
	none := errors.Is(err, fs.ErrNotExist)
	if err != nil && !none {
		return 0, fmt.Errorf("read the backup snapshot: %w", err)
	}
	if read.snapshot == nil {
		if len(read.journals) == 0 && none {
			s.snapshot = f.empty()
			return s.snapshot.Format, nil
		}
		damage = errors.New("it does not exist")
	}
	s.Damage = append(s.Damage, Damage{Path: f.statePath(), Problem: damage.Error()})
	if none {
		return s.empty(f), nil
	}
	s.snapshot, err = f.decodeSnapshot(backup)
	var corrupt *CorruptError
	switch {
	case err == nil:
		s.Steps = append(s.Steps, fmt.Sprintf("go back to snapshot %d, %s", s.snapshot.Serial, f.backupPath()))
		s.isBackup = true
		return f.formatOf(backup), nil
	case errors.As(err, &corrupt):
		s.Damage = append(s.Damage, Damage{Path: f.backupPath(), Problem: corrupt.Err.Error()})
		s.keep(f.backupPath())
		return s.empty(f), nil
	default:
		return 0, err
	}
}

// replayBackup applies the journal that leads from the backup to the snapshot that is lost. A
// journal that continues another snapshot does not count.
func (s *salvage) replayBackup(f Folder, format int) error {
	data, err := atomicfile.Read(f.backupJournalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the journal of the backup snapshot: %w", err)
	}
	j := journalFile{serial: s.snapshot.Serial, data: data, path: f.backupJournalPath()}
	if entries, _, err := f.decodeJournal(j, format); err != nil && len(entries) == 0 {
		return nil
	}
	s.replay(f, j, format)
	s.snapshot.Serial++
	return nil
}

func (s *salvage) empty(f Folder) int {
	s.snapshot = f.empty()
	s.Steps = append(s.Steps, "start without records: no snapshot can be read")
	return s.snapshot.Format
}

// replay applies a journal as far as it can be understood. The journal may continue a
// lost snapshot: its entries hold whole records, so they are valid on an older
// snapshot too.
func (s *salvage) replay(f Folder, j journalFile, format int) {
	path := f.pathOf(j)
	if j.serial > s.snapshot.Serial {
		problem := fmt.Sprintf("it continues snapshot %d, which is lost", j.serial)
		s.Damage = append(s.Damage, Damage{Path: path, Problem: problem})
	}
	entries, torn, err := f.decodeJournal(j, format)
	for _, e := range entries {
		s.snapshot.apply(e)
	}
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt):
		s.Damage = append(s.Damage, Damage{Path: path, Line: corrupt.Line, Problem: corrupt.Err.Error()})
		s.keep(path)
		s.Steps = append(s.Steps, fmt.Sprintf("apply the %d lines of %s before that, and drop the rest", len(entries), path))
	case torn != "":
		s.Damage = append(s.Damage, Damage{Path: path, Line: len(entries) + 1, Problem: "the last line was not written whole"})
		s.Steps = append(s.Steps, fmt.Sprintf("drop that line, on which no step relied, and apply the %d before it", len(entries)))
	case len(s.Damage) > 0:
		s.Steps = append(s.Steps, fmt.Sprintf("apply all %d lines of %s", len(entries), path))
	}
}

// keep plans a copy of a damaged file, under a name that is free.
func (s *salvage) keep(path string) {
	kept := path + ".corrupt"
	for n := 2; ; n++ {
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) && !slices.Contains(s.Kept, kept) {
			break
		}
		kept = path + ".corrupt." + strconv.Itoa(n)
	}
	s.damaged, s.Kept = append(s.damaged, path), append(s.Kept, kept)
	s.Steps = append(s.Steps, "keep a copy of it: "+filepath.Base(kept))
}
