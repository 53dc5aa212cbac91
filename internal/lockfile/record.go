package lockfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vmctl/internal/atomicfile"
)

// record is the content of the file that a holder writes beside its lock file: the
// holder, and the identity of the file that it has locked.
type record struct {
	Owner
	File string `json:"file,omitempty"` // the system's own identity of the file; "" where there is none
	Path string `json:"path"`           // of the file: in a copy of the folder, this is a record of another lock
}

// readRecord reads the record of a lock. It returns false if the record does not exist
// or cannot be read.
func readRecord(path string) (record, bool) {
	data, err := atomicfile.Read(ownerPath(path))
	if err != nil {
		return record{}, false
	}
	var r record
	return r, json.Unmarshal(data, &r) == nil
}

// write writes the record. The record need not be durable: it means something only
// while its holder lives. A process that finds it half written reads it again.
func (l *Lock) write(o Owner) error {
	// The record of a holder that crashed must not be read as ours meanwhile.
	if err := removeFile(ownerPath(l.path)); err != nil {
		return err
	}
	data, err := json.Marshal(record{Owner: o, File: fileID(l.file), Path: filepath.Clean(l.path)})
	if err != nil {
		return err
	}
	l.written = append(data, '\n')
	if err := os.WriteFile(ownerPath(l.path), l.written, 0o600); err != nil {
		return errors.Join(err, removeFile(ownerPath(l.path)))
	}
	return nil
}

// removeRecord removes the record, unless another process wrote it: one that got the lock after
// the lock file was replaced.
func (l *Lock) removeRecord() error {
	data, err := atomicfile.Read(ownerPath(l.path))
	if err == nil && !bytes.Equal(data, l.written) {
		return nil
	}
	return removeFile(ownerPath(l.path))
}

const ownerSuffix = ".owner"

func ownerPath(path string) string { return filepath.Clean(path) + ownerSuffix }

// checkReplaced fails with errHeld if file could be locked alone, but the lock is held all
// the same: a process holds or shares another file that had this name before.
func checkReplaced(ctx context.Context, file *os.File, path string) error {
	if heldUnderOldFile(file, path) {
		return errors.Join(errHeld, errReplaced)
	}
	all, err := Sharers(ctx, path)
	if err == nil && len(all) > 0 {
		return errors.Join(&sharedError{sharers: all}, errReplaced)
	}
	return err
}

// heldUnderOldFile reports whether another file that had this name before is still open in its
// holder: the lock is held then, though file could be locked.
func heldUnderOldFile(file *os.File, path string) bool {
	r, ok := replacedHolder(path)
	return ok && r.File != fileID(file)
}

// replacedHolder returns the record of a lock, and reports whether the holder in it still has
// the file open that it locked under this name.
func replacedHolder(path string) (record, bool) {
	r, ok := readRecord(path)
	return r, ok && r.File != "" && r.Path == filepath.Clean(path) && hasOpen(r.Owner, r.File)
}

// LostError reports that the file of a held lock was moved, removed or replaced: the
// next process may get the lock too.
type LostError struct {
	Path  string
	Owner Owner // who has it now; zero: nobody has said
}

// Error describes the loss, and names the new holder if there is one.
func (e *LostError) Error() string {
	lost := fmt.Sprintf("lock %s: its file was moved, removed or replaced while this process held it", e.Path)
	if e.Owner == (Owner{}) {
		return lost
	}
	return fmt.Sprintf("%s, and %s (pid %d on %s) has it now", lost, e.Owner.Command, e.Owner.PID, e.Owner.Host)
}

// Check fails with a *LostError if the lock no longer keeps others away, because
// another file, or none, has its name.
func (l *Lock) Check() error {
	if isAt(l.file, l.path) {
		return nil
	}
	lost := &LostError{Path: l.path}
	data, err := atomicfile.Read(ownerPath(l.path))
	if r, ok := readRecord(l.path); ok && err == nil && !bytes.Equal(data, l.written) {
		lost.Owner = r.Owner
	}
	return lost
}
