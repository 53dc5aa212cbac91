package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vmctl/internal/clock"
)

// ErrGone says that a process has ended before it could be captured.
var ErrGone = errors.New("it has ended")

// settleEvery is the time for which a command line must stay the same to count. Right
// after its start a process has the command line of its parent or none, and then those
// of the wrappers that it goes through.
const settleEvery = 10 * time.Millisecond

// Capture returns the identity of the process that has the pid, once it runs its final program:
// the start time first, and the rest when two successive readings agree on a command line that is
// neither empty nor that of a wrapper such as env, which replaces itself at once. Capture waits
// for that until ctx ends.
//
// An error that wraps ErrGone means that the process has ended. After any other error nothing is
// known about it.
func (h Host) Capture(ctx context.Context, pid int) (Identity, error) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return Identity{}, fmt.Errorf("identify pid %d: %w", pid, err)
	}
	if pid <= 1 {
		return Identity{}, fmt.Errorf("identify pid %d: pid invalid: it is not a process of ours", pid)
	}
	c := candidate{pid: pid}
	h.settle(ctx, []*candidate{&c})
	if c.err != nil {
		return Identity{}, fmt.Errorf("identify pid %d: %w", pid, c.err)
	}
	return here.identity(pid, c.seen), nil
}

// candidate is a process that may still be on its way to its final program.
type candidate struct {
	pid  int
	seen processFacts // in the last look
	// twice: the look before it saw the same.
	twice bool
	err   error
}

// settle examines all candidates until each has its final program, or an err that says why it has
// none. It waits for all of them at once.
func (h Host) settle(ctx context.Context, all []*candidate) {
	open := h.again(all, (*candidate).begin)
	for len(open) > 0 {
		if !clock.Pause(ctx, settleEvery) {
			for _, c := range open {
				c.err = fmt.Errorf("%s: %w", c.missing(), context.Cause(ctx))
			}
			return
		}
		open = h.again(open, (*candidate).compare)
	}
}

// again examines all candidates once more, and returns those that need another examination.
func (h Host) again(all []*candidate, take func(*candidate, processFacts) (done bool)) []*candidate {
	var open []*candidate
	for _, c := range all {
		s, err := h.sys().Look(c.pid)
		switch {
		case errors.Is(err, errNone), err == nil && s.Ended:
			c.err = ErrGone
		case err != nil:
			c.err = err
		case !take(c, s):
			open = append(open, c)
		}
	}
	return open
}

func (c *candidate) begin(s processFacts) bool {
	c.seen = s
	return false
}

// compare reports whether the candidate needs no more readings: two readings agree on its program,
// or c.err says why it cannot be captured.
func (c *candidate) compare(s processFacts) bool {
	last := c.seen
	c.seen = s
	if s.Start != last.Start {
		c.err = fmt.Errorf("%w, and its pid belongs to another", ErrGone)
		return true
	}
	if s.ArgvErr != nil {
		c.err = s.ArgvErr
		return true
	}
	c.twice = s.Exe == last.Exe && slices.Equal(s.Argv, last.Argv)
	return c.missing() == ""
}

// missing returns the reason why a process cannot be captured yet; empty: there is none.
func (c *candidate) missing() string {
	switch {
	case len(c.seen.Argv) == 0 || c.seen.Argv[0] == "" || c.seen.Ending:
		return "its command line is still empty"
	case isWrapper(c.seen):
		return fmt.Sprintf("it is still %s, which starts another program", valid(c.seen.Argv[0]))
	case !c.twice:
		return "its command line may still change"
	default:
		return ""
	}
}

func isWrapper(s processFacts) bool {
	return wrappers[base(s.Argv[0])] || wrappers[base(s.Exe)]
}

func base(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }
