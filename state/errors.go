package state

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"vmctl/internal/shellword"
	"vmctl/spec"
)

// Advised is an error with advice: Next returns the commands to type or the things to do next, a
// line each. Its message leaves them out. Some errors of this package implement it, or wrap one
// that does.
type Advised interface {
	error
	Next() []string
}

var (
	_ Advised = (*LockedError)(nil)
	_ Advised = (*CorruptError)(nil)
	_ Advised = (*NewerError)(nil)
	_ Advised = (*MismatchError)(nil)
	_ Advised = (*advised)(nil)
)

// LockedError reports that another process holds the run lock.
type LockedError struct {
	Where  string // the data directory, or the place of another store
	Holder Holder // zero where its record cannot be read
	// Replaced says that the lock file was replaced while the holder has it.
	Replaced bool
	Self     bool // the holder is this very process
}

// Error names the holder.
func (e *LockedError) Error() string {
	switch {
	case e.Self:
		return fmt.Sprintf("take the run lock in %s: this process holds it already, for %q", e.Where, e.Holder.Command)
	case e.Holder == Holder{}:
		return fmt.Sprintf("take the run lock in %s: another process holds it", e.Where)
	default:
		since := e.Holder.Since.UTC().Format(time.RFC3339)
		if e.Replaced {
			since += ", though its lock file was replaced"
		}
		return fmt.Sprintf("take the run lock in %s: %q (pid %d on %s) has held it since %s",
			e.Where, e.Holder.Command, e.Holder.PID, e.Holder.Host, since)
	}
}

// Next advises to wait for the holder.
func (e *LockedError) Next() []string {
	if e.Self {
		return nil
	}
	return []string{"wait for it to end, or let this command wait with --lock-timeout=5m"}
}

// LostLockError reports that the run lock excludes no other process any more. The journal keeps all
// earlier entries, and nothing more is written.
type LostLockError struct {
	Cause  string // "/data/lock was moved, removed or replaced meanwhile"
	Holder Holder // who has it now; zero: nobody has said
}

// Error names the cause and the new holder.
func (e *LostLockError) Error() string {
	who := "another command may be at work"
	if e.Holder != (Holder{}) {
		who = fmt.Sprintf("%q (pid %d on %s) has it now", e.Holder.Command, e.Holder.PID, e.Holder.Host)
	}
	return fmt.Sprintf("the run lock is lost: %s, and %s; nothing more is written", e.Cause, who)
}

// CorruptError reports that a file of the state cannot be decoded. The file is unchanged, and no
// part of the state was used.
type CorruptError struct {
	Path   string
	Backup string // a snapshot to go back to; "": there is none, or it is not needed
	Line   int    // of a journal, from 1; 0: the file as a whole
	Err    error

	repair string // the command that repairs it; "": none can
}

// Error names the file, the line and the cause.
func (e *CorruptError) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d,", e.Path, e.Line)
	}
	return fmt.Sprintf("read the state: %s is corrupt: %v; nothing was changed", where, e.Err)
}

// Next says which part can be recovered, and then, on a line of its own, the command that does it.
func (e *CorruptError) Next() []string {
	aside := fmt.Sprintf("mv %s %s", shellword.Quote(e.Path), shellword.Quote(e.Path+".corrupt"))
	back := fmt.Sprintf("to go back to the snapshot before it, %s:", e.Backup)
	switch {
	case e.repair == "" && e.Backup != "":
		return []string{back, fmt.Sprintf("%s && cp -p %s %s", aside, shellword.Quote(e.Backup), shellword.Quote(e.Path))}
	case e.repair == "":
		return []string{"to go on without it, and find by its marks what this project owns:", aside}
	case e.Backup != "":
		return []string{back, e.repair}
	case e.Line > 0:
		return []string{"to keep the lines before it, and go on:", e.repair}
	default:
		return []string{"to keep what can be read, and find by its marks what this project owns:", e.repair}
	}
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// NewerError reports that a newer vmctl wrote the state, in a format or with values that this one
// does not know.
type NewerError struct {
	Path    string
	Format  int
	Version string // of the vmctl that wrote it; "" if it does not say
	// Kind is a kind of which the state has records with a newer version of its shape. This vmctl
	// can read the state, and does not write it. "": the format is newer.
	Kind              spec.Kind
	Shape, KnownShape int // the versions of the shape; KnownShape is 0 if the kind is unknown
}

// Error names both formats, or both versions of the shape.
func (e *NewerError) Error() string {
	if e.Kind != "" {
		return fmt.Sprintf("open the state: %s has records of %s with version %d of its shape, and this vmctl knows versions up to %d; nothing was changed",
			e.Path, e.Kind, e.Shape, e.KnownShape)
	}
	return fmt.Sprintf("read the state: %s has format %d, and this vmctl knows formats up to %d; nothing was changed", e.Path, e.Format, Format)
}

// Next advises to use that version.
func (e *NewerError) Next() []string {
	if e.Version == "" {
		return []string{"use a newer vmctl"}
	}
	return []string{"use vmctl " + e.Version}
}

// MismatchError reports that the data directory holds the state of another project.
type MismatchError struct {
	Path                 string
	HasID, HasProject    string // of the file
	WantsID, WantProject string // of the spec
}

// Error names both projects.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("read the state: %s belongs to project %q (id %s), and the spec is project %q (id %s); nothing was changed",
		e.Path, e.HasProject, e.HasID, e.WantProject, e.WantsID)
}

// Next advises to choose another data directory.
func (e *MismatchError) Next() []string {
	return []string{"choose another data directory with --data-dir"}
}

// advised adds one line of advice to an error.
type advised struct {
	error
	next string
}

// Unwrap returns the error.
func (e *advised) Unwrap() error { return e.error }

// Next returns the advice.
func (e *advised) Next() []string { return []string{e.next} }

// IsFull reports whether an error means that the disk, or the user's quota, is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// withAdvice adds advice to an error about a full disk or a folder that is not writable.
func withAdvice(err error) error {
	switch {
	case IsFull(err):
		return &advised{err, "free some space there, then run the command again"}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return &advised{err, "make the data directory writable for this user, or choose another with --data-dir"}
	default:
		return err
	}
}
