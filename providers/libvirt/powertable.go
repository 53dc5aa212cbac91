package libvirt

import (
	"fmt"

	"vmctl/providers"
)

// power is a domain's run state.
type power struct {
	State  string // StateRunning, StatePaused, StateEnding or StateOff of providers
	Words  string // libvirt's own: "shut off (destroyed)"
	Reason reason
}

// reason is the cause of a domain's state, as far as vmctl acts on it.
type reason string

const (
	asUsual      reason = ""
	byUser       reason = "user"        // paused; it only needs a resume
	broke        reason = "broke"       // paused or off because something went wrong
	inTransition reason = "transition"  // paused while libvirt works on it
	inPassing    reason = "passing"     // paused while libvirt starts or ends it, which takes a moment
	byRequest    reason = "shutdown"    // off; the guest or a request did it
	byForce      reason = "destroyed"   // off; it was forced
	withMemory   reason = "saved"       // off; its memory is saved for the next start
	endsSoon     reason = "in shutdown" // still there, on its way down
	asleep       reason = "asleep"      // paused by its guest; it only needs a wake-up
)

// on reports whether the domain has a QEMU process.
func (p power) on() bool { return p.State != providers.StateOff }

// counted returns the run state that a plan relies on: on, paused or off. A domain on its way
// down counts as on until it is off.
func (p power) counted() string {
	if p.State == providers.StateEnding {
		return providers.StateRunning
	}
	return p.State
}

// lost reports whether a started guest cannot run on.
func (p power) lost() bool {
	return p.State != providers.StateRunning && !p.unsettled() && p.Reason != endsSoon
}

// unsettled reports whether libvirt is working on the domain: it is not known how that will end.
func (p power) unsettled() bool { return p.Reason == inTransition || p.Reason == inPassing }

type stateRow struct {
	state   string
	words   string
	reasons map[int]reasonRow
}

type reasonRow struct {
	words  string
	reason reason
}

// states maps virDomainState and its reasons to the words of `virsh domstate --reason`.
var states = map[int]stateRow{
	1: {providers.StateRunning, "running", map[int]reasonRow{
		1: {"booted", asUsual}, 2: {"migrated", asUsual}, 3: {"restored", asUsual}, 4: {"from snapshot", asUsual},
		5: {"unpaused", asUsual}, 6: {"migration canceled", asUsual}, 7: {"save canceled", asUsual},
		8: {"event wakeup", asUsual}, 9: {"crashed", asUsual}, 10: {"post-copy", asUsual},
	}},
	2: {providers.StateRunning, "idle", nil},
	3: {providers.StatePaused, "paused", map[int]reasonRow{
		0: {"internal error", broke}, 1: {"user", byUser}, 2: {"migrating", inTransition}, 3: {"saving", inTransition},
		4: {"dumping", inTransition}, 5: {"I/O error", broke}, 6: {"watchdog", broke}, 7: {"from snapshot", byUser},
		8: {"shutting down", inPassing}, 9: {"creating snapshot", inTransition}, 10: {"crashed", broke},
		11: {"starting up", inPassing}, 12: {"post-copy", inTransition}, 13: {"post-copy failed", broke},
		14: {"api error", broke},
	}},
	4: {providers.StateEnding, "in shutdown", map[int]reasonRow{1: {"user", endsSoon}}},
	5: {providers.StateOff, "shut off", map[int]reasonRow{
		1: {"shutdown", byRequest}, 2: {"destroyed", byForce}, 3: {"crashed", broke}, 4: {"migrated", asUsual},
		5: {"saved", withMemory}, 6: {"failed", broke}, 7: {"from snapshot", asUsual}, 8: {"daemon", broke},
	}},
	6: {providers.StatePaused, "crashed", map[int]reasonRow{1: {"panicked", broke}}},
	7: {providers.StatePaused, "pmsuspended", map[int]reasonRow{0: {"by its guest", asleep}}},
}

// powerOf reads a state and a reason as libvirt numbers them.
func powerOf(state, why int) power {
	row, ok := states[state]
	if !ok {
		return power{State: providers.StateRunning, Words: fmt.Sprintf("in a state that this vmctl does not know (%d)", state), Reason: inTransition}
	}
	p := power{State: row.state, Words: row.words}
	r, ok := row.reasons[why]
	if !ok {
		return p
	}
	p.Words, p.Reason = row.words+" ("+r.words+")", r.reason
	return p
}
