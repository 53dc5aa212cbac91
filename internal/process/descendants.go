package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// Descendants returns the processes that this one started and that live, with all that those
// started, by pid; also those in sessions of their own. Once AdoptOrphans was called, no descendant
// can leave. An error says that some could not be read.
func (h Host) Descendants() ([]Identity, error) {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return nil, fmt.Errorf("find descendants: %w", err)
	}
	pids, err := h.sys().PIDs()
	if err != nil {
		return nil, fmt.Errorf("find descendants: %w", err)
	}
	facts := map[int]processFacts{}
	var unread unreadable
	for _, pid := range pids {
		s, err := h.sys().Look(pid)
		switch {
		case errors.Is(err, errNone):
		case err != nil:
			unread.add(pid, err)
		default:
			facts[pid] = s
		}
	}
	var found []Identity
	for _, pid := range pids {
		if s, ok := facts[pid]; ok && !s.Ended && comesFrom(facts, pid, os.Getpid()) {
			found = append(found, here.identity(pid, s))
		}
	}
	return found, unread.err()
}

// comesFrom reports whether ancestor is above pid. A zombie counts as a link.
func comesFrom(facts map[int]processFacts, pid, ancestor int) bool {
	var seen []int
	for pid > 1 && !slices.Contains(seen, pid) {
		seen = append(seen, pid)
		if pid = facts[pid].Parent; pid == ancestor {
			return true
		}
	}
	return false
}
