package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/atomicfile"
)

// files holds the bytes of the snapshot and the journals of a data directory.
type files struct {
	snapshot []byte // nil: there is none
	journals []journalFile
}

type journalFile struct {
	serial uint64
	data   []byte
	path   string // "": that of its serial
}

// pathOf returns the path of a journal.
func (f Folder) pathOf(j journalFile) string { return cmp.Or(j.path, f.journalPath(j.serial)) }

func (f files) has(serial uint64) bool {
	return slices.ContainsFunc(f.journals, func(j journalFile) bool { return j.serial == serial })
}

// readFiles reads the snapshot and the journals. The result is stable if the
// snapshot was the same before and after: a writer replaces the snapshot before it
// removes the journal, so a stable snapshot and its journals belong together.
func (f Folder) readFiles() (read files, stable bool, err error) {
	if read.snapshot, err = f.readSnapshot(); err != nil {
		return files{}, false, err
	}
	if f.betweenReads != nil {
		f.betweenReads()
	}
	if read.journals, err = f.readJournals(); err != nil {
		return files{}, false, err
	}
	again, err := f.readSnapshot()
	if err != nil {
		return files{}, false, err
	}
	same := (again == nil) == (read.snapshot == nil) && bytes.Equal(again, read.snapshot)
	return read, same, nil
}

// readSnapshot returns the bytes of state.json. Without an error they are nil only if
// nothing has that name.
func (f Folder) readSnapshot() ([]byte, error) {
	data, err := atomicfile.Read(f.statePath())
	if err == nil {
		return data, nil
	}
	info, lstatErr := os.Lstat(f.statePath())
	switch {
	case errors.Is(err, fs.ErrNotExist) && errors.Is(lstatErr, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist) && lstatErr == nil && info.Mode()&fs.ModeSymlink == 0:
		// It was made between the two looks.
		return f.readSnapshot()
	case lstatErr == nil && info.IsDir():
		e := f.corruptSnapshot(errors.New("it is a folder"))
		e.repair = "" // no command moves it away
		return nil, e
	case errors.Is(err, atomicfile.ErrNotRegular):
		e := f.corruptSnapshot(atomicfile.ErrNotRegular)
		e.repair = "" // no command moves it away
		return nil, e
	default:
		return nil, &advised{
			fmt.Errorf("read the state: %w; nothing was changed", err),
			"make that file readable, or choose another data directory with --data-dir",
		}
	}
}

// readJournals reads every journal, oldest first.
func (f Folder) readJournals() ([]journalFile, error) {
	serials, err := f.journalSerials()
	if err != nil {
		return nil, err
	}
	var journals []journalFile
	for _, serial := range serials {
		data, err := atomicfile.Read(f.journalPath(serial))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, atomicfile.ErrNotRegular) {
			return nil, &CorruptError{Path: f.journalPath(serial), Err: atomicfile.ErrNotRegular}
		}
		if err != nil {
			return nil, &advised{fmt.Errorf("read the journal: %w; nothing was changed", err), "make that file readable"}
		}
		journals = append(journals, journalFile{serial: serial, data: data})
	}
	return journals, nil
}

func (f Folder) journalSerials() ([]uint64, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the data directory: %w", err)
	}
	var serials []uint64
	for _, e := range entries {
		if serial, ok := parseJournalName(e.Name()); ok {
			serials = append(serials, serial)
		}
	}
	slices.Sort(serials)
	return serials, nil
}

// retireJournals removes the journals that the snapshot with a serial contains. The last of
// them stays as the backup's journal: it leads from the backup to the snapshot.
func (f Folder) retireJournals(snapshot uint64) error {
	serials, err := f.journalSerials()
	if err != nil {
		return err
	}
	serials = slices.DeleteFunc(serials, func(serial uint64) bool { return serial >= snapshot })
	for _, serial := range serials {
		if serial+1 == snapshot {
			err = os.Rename(f.journalPath(serial), f.backupJournalPath())
		} else {
			err = os.Remove(f.journalPath(serial))
		}
		if err != nil {
			return fmt.Errorf("put away a journal that the state contains: %w", err)
		}
	}
	if len(serials) == 0 {
		return nil
	}
	return atomicfile.SyncDir(f.Dir)
}

// removeJournals removes all journals with a serial below that of a snapshot, and the backup's.
func (f Folder) removeJournals(snapshot uint64) error {
	if err := f.retireJournals(snapshot); err != nil {
		return err
	}
	if err := os.Remove(f.backupJournalPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a journal that the state contains: %w", err)
	}
	return atomicfile.SyncDir(f.Dir)
}

func journalName(serial uint64) string {
	return "journal-" + strconv.FormatUint(serial, 10) + ".ndjson"
}

// parseJournalName accepts only names that journalName makes.
func parseJournalName(name string) (serial uint64, ok bool) {
	digits := strings.TrimSuffix(strings.TrimPrefix(name, "journal-"), ".ndjson")
	serial, err := strconv.ParseUint(digits, 10, 64)
	return serial, err == nil && journalName(serial) == name
}

// rewrite replaces a file of the state. If path is a symbolic link, it replaces the file to which
// the link leads, and keeps the link.
func rewrite(path string, data []byte) error {
	target, err := resolveLink(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(target, data, 0o600)
}

// resolveLink returns the file to which a symbolic link leads in the end, or path itself if it is
// no link.
func resolveLink(path string) (string, error) {
	if info, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return path, nil
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("follow the symbolic link %s: it leads to nothing; nothing was changed: remove it, or bring back what it led to", path)
	}
	if err != nil {
		return "", fmt.Errorf("follow the symbolic link %s: %w", path, err)
	}
	return target, nil
}
