package process

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// system gives access to the processes of an operating system. The code above it is the
// same on every system.
type system interface {
	// HostIdentity returns the identity of this machine and boot. An error means that the process
	// table cannot be trusted, so that nothing can be said about any process.
	HostIdentity() (hostIdentity, error)
	// Look reads one process. errNone is positive proof that there is none; any
	// other error means that nothing can be said.
	Look(pid int) (processFacts, error)
	// PIDs returns the visible processes, sorted. An error that wraps fs.ErrPermission
	// comes with them, and means that there are others.
	PIDs() ([]int, error)
	// Tree returns the processes that end when the handle of pid is forced, pid first.
	Tree(pid int) ([]int, error)
	// Open holds on to the process that has the pid now, or fails with errNone.
	Open(pid int) (handle, error)
}

// handle refers to one process, as reliably as the system can: its pid is not given to another
// process while the handle is open, or a signal reaches no other process. Request and Force fail
// with errNone if the process has ended.
type handle interface {
	// Request asks the process to end by itself.
	Request() error
	// Force ends the process and its tree.
	Force() error
	// Ended returns true when the process has ended, and false when it is worth
	// another look or ctx has ended.
	Ended(ctx context.Context) bool
	Close() error
}

// hostIdentity names the machine, the boot and the namespace in which a process runs.
type hostIdentity struct {
	Host, Machine, Boot, Namespace string
}

// processFacts holds the facts of a process, all read at one time.
type processFacts struct {
	Start  uint64
	PGID   int
	Parent int // its pid; 0: it is not known
	UID    int // of the user who runs it; -1: it is not known, or the system has no such IDs
	// Ended: only the exit status is left. Ending: the program has left the
	// memory, and the process is on its way out.
	Ended, Ending bool
	Exe           string
	ExeErr        error // why Exe is empty; nil while Ending
	Argv          []string
	ArgvErr       error // why Argv is empty; nil: the process has none, perhaps not yet
}

// errNone says that there is no such process.
var errNone = errors.New("no such process")

// pollEvery is the longest time until an end is noticed if the system does not announce
// it.
const pollEvery = 20 * time.Millisecond

// program returns the path of an executable in the form in which paths are compared:
// without the suffix that an upgrade adds when it replaces the file of a running program.
func program(exe string) string { return valid(strings.TrimSuffix(exe, " (deleted)")) }

// valid returns s as valid UTF-8, which JSON keeps unchanged.
func valid(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
