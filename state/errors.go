package state

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"vmctl/internal/shellword"
)

// Advised is an error that says what to type or do next, a line each; its message
// leaves that out. Some errors of this package are of that kind, or wrap one.
type Advised interface {
	error
	Next() []string
}

var (
	_ Advised = (*LockedError)(nil)
	_ Advised = (*LostLockError)(nil)
	_ Advised = (*CorruptError)(nil)
	_ Advised = (*NewerError)(nil)
	_ Advised = (*MismatchError)(nil)
	_ Advised = (*advised)(nil)
)

// LockedError says that another process holds the run lock.
type LockedError struct {
	Dir    string // the data directory
	Holder Holder // zero where its record cannot be read
	// Replaced says that the lock file was replaced while the holder has it.
	Replaced bool
	Self     bool // the holder is this very process
}

// Error names the holder.
func (e *LockedError) Error() string {
	switch {
	case e.Self:
		return fmt.Sprintf("take the run lock in %s: this process holds it already, for %q", e.Dir, e.Holder.Command)
	case e.Holder == Holder{}:
		return fmt.Sprintf("take the run lock in %s: another process holds it", e.Dir)
	default:
		since := e.Holder.Since.UTC().Format(time.RFC3339)
		if e.Replaced {
			since += ", though its lock file was replaced"
		}
		return fmt.Sprintf("take the run lock in %s: %q (pid %d on %s) has held it since %s",
			e.Dir, e.Holder.Command, e.Holder.PID, e.Holder.Host, since)
	}
}

// Next says how to wait for the holder.
func (e *LockedError) Next() []string {
	if e.Self {
		return nil
	}
	return []string{"wait for it to end, or let this command wait with --lock-timeout=5m"}
}

// LostLockError says that the run lock keeps nobody away any more: its file was
// moved, removed or replaced under this process. Nothing more is written; the
// journal has all that was before.
type LostLockError struct {
	Path   string // of the lock file
	Holder Holder // who has it now; zero: nobody has said
}

// Error says what happened.
func (e *LostLockError) Error() string {
	who := "another command may be at work"
	if e.Holder != (Holder{}) {
		who = fmt.Sprintf("%q (pid %d on %s) has it now", e.Holder.Command, e.Holder.PID, e.Holder.Host)
	}
	return fmt.Sprintf("the run lock is lost: %s was moved, removed or replaced meanwhile, and %s; nothing more is written", e.Path, who)
}

// Next says how to look at what has come of it.
func (e *LostLockError) Next() []string {
	return []string{"list the locks with vmctl lock list, then vmctl plan"}
}

// CorruptError says that a file of the state cannot be understood. The file is
// untouched, and the state was not read as anything.
type CorruptError struct {
	Path   string
	Backup string // a snapshot to go back to; "": there is none, or it is not needed
	Line   int    // of a journal, from 1; 0: the file as a whole
	Err    error

	repair string // the command that repairs it; "": none can
}

// Error says what is wrong, and where.
func (e *CorruptError) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d,", e.Path, e.Line)
	}
	return fmt.Sprintf("read the state: %s is corrupt: %v; nothing was changed", where, e.Err)
}

// Next says what can be had back, and on a line of its own what to type for it.
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

// Unwrap returns what is wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

// NewerError says that a newer vmctl wrote the state, in a format that this one
// does not know.
type NewerError struct {
	Path    string
	Format  int
	Version string // of the vmctl that wrote it; "" if it does not say
}

// Error names both formats.
func (e *NewerError) Error() string {
	return fmt.Sprintf("read the state: %s has format %d, and this vmctl knows formats up to %d; nothing was changed", e.Path, e.Format, Format)
}

// Next says which version is needed.
func (e *NewerError) Next() []string {
	if e.Version == "" {
		return []string{"use a newer vmctl"}
	}
	return []string{"use vmctl " + e.Version}
}

// MismatchError says that the data directory holds another project's state.
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

// Next says how to keep both apart.
func (e *MismatchError) Next() []string {
	return []string{"choose another data directory with --data-dir"}
}

// advised is an error with something to do about it.
type advised struct {
	error
	next string
}

// Unwrap returns the error.
func (e *advised) Unwrap() error { return e.error }

// Next returns what to do.
func (e *advised) Next() []string { return []string{e.next} }

// IsFull reports whether a disk, or what the user may have of it, is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// withAdvice adds what to do about a full disk, and about a folder that cannot be
// written to.
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
