package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Found is a process with the arguments that it was started with.
type Found struct {
	Identity
	Argv   []string
	Parent int // the pid of its parent; 0: it is not known
	UID    int // of the user who runs it; -1: it is not known, or the system has no such IDs
}

// Find returns the identities of all processes whose arguments satisfy match, as Search does.
func (h Host) Find(ctx context.Context, match func(argv []string) bool) ([]Identity, error) {
	all, err := h.Search(ctx, match)
	var found []Identity
	for _, f := range all {
		found = append(found, f.Identity)
	}
	return found, err
}

// Search returns all processes whose arguments satisfy match, sorted by pid; it finds the processes
// of a crashed run, for example. argv holds the arguments that the process was started with, at
// least one. Search leaves out this process and processes that have ended. A process that replaces
// its program meanwhile counts with its final program, for which Search waits until ctx ends.
//
// An error says that some processes could not be read, so that more may match than are returned.
// If it wraps fs.ErrPermission, all of those belong to other users.
func (h Host) Search(ctx context.Context, match func(argv []string) bool) ([]Found, error) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	pids, err := h.sys().PIDs()
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("find processes: %w", err)
	}
	unread := unreadable{hidden: err}
	var likely []*candidate
	for _, pid := range pids {
		if pid <= 1 || pid == os.Getpid() {
			continue
		}
		if argv, none := h.arguments(pid); none || len(argv) > 0 && !match(argv) {
			continue
		}
		s, err := h.sys().Look(pid)
		switch {
		case errors.Is(err, errNone), err == nil && (s.Ended || s.Ending):
		case err != nil:
			unread.add(pid, err)
		case s.ArgvErr != nil:
			unread.add(pid, s.ArgvErr)
		case isStarting(s), len(s.Argv) > 0 && match(s.Argv):
			likely = append(likely, &candidate{pid: pid})
		}
	}
	h.settle(ctx, likely)
	var found []Found
	for _, c := range likely {
		switch {
		case errors.Is(c.err, ErrGone):
		case c.err != nil:
			unread.add(c.pid, c.err)
		case match(c.seen.Argv):
			found = append(found, Found{Identity: here.identity(c.pid, c.seen), Argv: c.seen.Argv, Parent: c.seen.Parent, UID: c.seen.UID})
		}
	}
	return found, unread.err()
}

// argumentReader is a system that reads the arguments of a process at a fraction of the price of
// Look. Most processes of a machine are none of those that a search is for.
type argumentReader interface {
	// Arguments returns the arguments of a process; nil: it has none, perhaps not yet, or they
	// cannot be read. none: it certainly runs no program, as a thread of the kernel.
	Arguments(pid int) (argv []string, none bool)
}

// arguments returns the arguments of a process, or that it runs no program; else Look has to tell.
func (h Host) arguments(pid int) (argv []string, none bool) {
	if r, ok := h.sys().(argumentReader); ok {
		return r.Arguments(pid)
	}
	return nil, false
}

// HasArgument returns a match for Find: one argument that is exactly s. A path
// that merely contains s does not count.
func HasArgument(s string) func(argv []string) bool {
	return func(argv []string) bool { return len(argv) > 1 && slices.Contains(argv[1:], s) }
}

// isStarting reports whether s was seen between two programs: it has a file, and
// no command line yet. A thread of the kernel has neither.
func isStarting(s processFacts) bool { return len(s.Argv) == 0 && s.Exe != "" }

// unreadable counts the processes that could not be read.
type unreadable struct {
	hidden     error // others are not even shown
	count, pid int
	worst      error // the first that is no lack of permission, else the first
}

func (u *unreadable) add(pid int, err error) {
	u.count++
	if u.worst == nil || errors.Is(u.worst, fs.ErrPermission) && !errors.Is(err, fs.ErrPermission) {
		u.pid, u.worst = pid, err
	}
}

func (u *unreadable) err() error {
	switch {
	case u.count > 0:
		return fmt.Errorf("find processes: %d could not be read, of which pid %d: %w", u.count, u.pid, u.worst)
	case u.hidden != nil:
		return fmt.Errorf("find processes: %w", u.hidden)
	}
	return nil
}
