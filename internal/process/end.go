package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// RefusedError reports that a process was not signalled, because it was not verified to be the
// recorded one.
type RefusedError struct {
	Process Identity
	Verdict Verdict // anything but Match
	Reason  string  // of the verdict
}

// Error gives the verdict and its reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused: %s: %s", e.Verdict, e.Reason) }

// Request verifies the process and asks it to end by itself; it does not ask the children. The
// process may ignore the request or take its time: Wait waits for its end. A process that ends
// meanwhile is no error. A process that cannot be verified is not asked: a *RefusedError.
func (h Host) Request(id Identity) (err error) {
	held, err := h.openVerified(id)
	if err != nil {
		return fmt.Errorf("request %s to end: %w", id.describe(), err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := held.Request(); err != nil && !errors.Is(err, errNone) {
		return fmt.Errorf("request %s to end: %w", id.describe(), explain(err))
	}
	return nil
}

// Force verifies the process and ends it at once, together with all processes of the group that it
// leads. If it leads none, Force ends it alone: the others in its group are not its own. A
// descendant that left the group, as each child of Start has, is not ended; Find finds it by its
// arguments. Windows has no such groups: there Force ends all descendants.
//
// Force returns the processes that it ended, the recorded one first, with their identities just
// before; Wait confirms that all of them are gone. A process that cannot be verified is not ended:
// a *RefusedError. Force also refuses a process to whose group this very process belongs.
func (h Host) Force(id Identity) (ended []Identity, err error) {
	held, err := h.openVerified(id)
	if err != nil {
		return nil, fmt.Errorf("force %s to end: %w", id.describe(), err)
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	ended, err = h.tree(id)
	if err != nil {
		return nil, fmt.Errorf("force %s to end: %w", id.describe(), err)
	}
	if err := held.Force(); err != nil && !errors.Is(err, errNone) {
		return nil, fmt.Errorf("force %s to end: %w", id.describe(), explain(err))
	}
	return ended, nil
}

// openVerified returns a handle of exactly the recorded process, or a *RefusedError.
func (h Host) openVerified(id Identity) (handle, error) {
	// Before anything is looked up: a system may take such numbers for groups.
	if id.PID <= 1 {
		verdict, reason := hostIdentity{}.locate(id)
		return nil, &RefusedError{Process: id, Verdict: verdict, Reason: reason}
	}
	// The handle comes first. If the process that it holds had replaced the
	// recorded one, it is the one that is verified now.
	held, err := h.sys().Open(id.PID)
	if err != nil && !errors.Is(err, errNone) {
		return nil, &RefusedError{Process: id, Verdict: Unknown, Reason: err.Error()}
	}
	verdict, reason := h.Verify(id)
	switch {
	case verdict != Match:
		err = &RefusedError{Process: id, Verdict: verdict, Reason: reason}
	case err != nil:
		// There was none a moment ago, and pids are not given to the dead.
		err = &RefusedError{Process: id, Verdict: Unknown, Reason: fmt.Sprintf("pid %d came and went", id.PID)}
	default:
		return held, nil
	}
	if held != nil {
		err = errors.Join(err, held.Close())
	}
	return nil, err
}

// tree returns the processes that end when the verified id is forced, id first. It fails
// if this process is one of them.
func (h Host) tree(id Identity) ([]Identity, error) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, err
	}
	pids, err := h.sys().Tree(id.PID)
	if err != nil {
		return nil, err
	}
	if slices.Contains(pids, os.Getpid()) {
		return nil, errors.New("this command runs inside it and would end too: run it from elsewhere")
	}
	tree := []Identity{id}
	for _, pid := range pids {
		s, err := h.sys().Look(pid)
		switch {
		case pid == id.PID, errors.Is(err, errNone), err == nil && s.Ended:
		case err != nil:
			return nil, fmt.Errorf("its child, pid %d: %w", pid, err)
		default:
			tree = append(tree, here.identity(pid, s))
		}
	}
	return tree, nil
}

// describe names the process for people: pid 4711 (qemu-system-x86_64).
func (id Identity) describe() string {
	if id.Argv0 == "" {
		return fmt.Sprintf("pid %d", id.PID)
	}
	return fmt.Sprintf("pid %d (%s)", id.PID, base(id.Argv0))
}

func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: it belongs to another user, run the command as that user", err)
	}
	return err
}

// descendants returns pid and its descendants, in the order of generations and pids, on a system
// such as Windows where a process keeps the number of its parent after the parent's end. That
// number may belong to another process by now, so a child that is older than its parent does not
// count. started fails for a process that has ended.
func descendants(pid int, parents map[int]int, started func(pid int) (uint64, error)) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		parent, err := started(all[i])
		if err != nil {
			continue
		}
		generation := []int{}
		for child, its := range parents {
			if its != all[i] || slices.Contains(all, child) {
				continue
			}
			if start, err := started(child); err == nil && start >= parent {
				generation = append(generation, child)
			}
		}
		slices.Sort(generation)
		all = append(all, generation...)
	}
	return all
}

// Each calls act, Request or Force, for each process. Those that have ended meanwhile are left out.
func Each(all []Identity, act func(Identity) error) error {
	var errs []error
	for _, id := range all {
		var refused *RefusedError
		err := act(id)
		if errors.As(err, &refused) && (refused.Verdict == Gone || refused.Verdict == Reused) {
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Words names processes for people: "pid 7, pid 9".
func Words(all []Identity) string {
	words := make([]string, len(all))
	for i, id := range all {
		words[i] = fmt.Sprintf("pid %d", id.PID)
	}
	return strings.Join(words, ", ")
}
