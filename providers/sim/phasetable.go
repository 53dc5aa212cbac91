package sim

import "vmctl/providers"

// recorded is the fate of the process that a VM's pid file names.
type recorded string

const (
	noRecord         recorded   = "none" // there is no pid file
	recordAlive      recorded   = "alive"
	recordGone       recorded   = "gone"
	recordReused     recorded   = "reused" // another process has the pid by now
	recordUnknown    recorded   = "unknown"
	unrecordedNone   unrecorded = "none"
	unrecordedSome   unrecorded = "some"
	unrecordedUnseen unrecorded = "unseen" // the process table could not be read
	socketThere      socket     = "there"
	socketMissing    socket     = "missing"
	stateUnknown     string     = "" // nothing is done to such a VM
	reasonUnknown               = "it cannot be told whether the process of its pid file runs"
	reasonUnseen                = "it has no process that is known, and it cannot be said that none runs it"
	reasonBeside                = "runs it too, beside the process that its pid file names"
	reasonNoRecord              = "runs it, and it has no pid file"
	reasonOther                 = "runs it, and its pid file names another that is gone"
	reasonNoSocket              = "its process runs, and cannot be reached: its socket is gone"
)

// unrecorded tells whether a VM has processes that its pid file does not name.
type unrecorded string

// socket tells whether a VM's socket exists.
type socket string

// phase describes the state of a VM. leftover: there are files of a process that is gone.
type phase struct {
	recorded   recorded
	unrecorded unrecorded
	socket     socket
	state      string
	reason     string // of a broken or an unknown state
	leftover   bool
}

// phases is the state table of a VM: it maps each combination to its phase. A pid that
// another process has got counts as gone; an unknown state is never off.
var phases = []phase{
	{noRecord, unrecordedNone, socketMissing, providers.StateOff, "", false},
	{noRecord, unrecordedNone, socketThere, providers.StateOff, "", true},
	{noRecord, unrecordedSome, socketMissing, providers.StateBroken, reasonNoRecord, false},
	{noRecord, unrecordedSome, socketThere, providers.StateBroken, reasonNoRecord, false},
	{noRecord, unrecordedUnseen, socketMissing, stateUnknown, reasonUnseen, false},
	{noRecord, unrecordedUnseen, socketThere, stateUnknown, reasonUnseen, false},
	{recordAlive, unrecordedNone, socketMissing, providers.StateBroken, reasonNoSocket, false},
	{recordAlive, unrecordedNone, socketThere, providers.StateRunning, "", false},
	{recordAlive, unrecordedSome, socketMissing, providers.StateBroken, reasonBeside, false},
	{recordAlive, unrecordedSome, socketThere, providers.StateBroken, reasonBeside, false},
	{recordAlive, unrecordedUnseen, socketMissing, providers.StateBroken, reasonNoSocket, false},
	{recordAlive, unrecordedUnseen, socketThere, providers.StateRunning, "", false},
	{recordGone, unrecordedNone, socketMissing, providers.StateOff, "", true},
	{recordGone, unrecordedNone, socketThere, providers.StateOff, "", true},
	{recordGone, unrecordedSome, socketMissing, providers.StateBroken, reasonOther, true},
	{recordGone, unrecordedSome, socketThere, providers.StateBroken, reasonOther, true},
	{recordGone, unrecordedUnseen, socketMissing, stateUnknown, reasonUnseen, false},
	{recordGone, unrecordedUnseen, socketThere, stateUnknown, reasonUnseen, false},
	{recordReused, unrecordedNone, socketMissing, providers.StateOff, "", true},
	{recordReused, unrecordedNone, socketThere, providers.StateOff, "", true},
	{recordReused, unrecordedSome, socketMissing, providers.StateBroken, reasonOther, true},
	{recordReused, unrecordedSome, socketThere, providers.StateBroken, reasonOther, true},
	{recordReused, unrecordedUnseen, socketMissing, stateUnknown, reasonUnseen, false},
	{recordReused, unrecordedUnseen, socketThere, stateUnknown, reasonUnseen, false},
	{recordUnknown, unrecordedNone, socketMissing, stateUnknown, reasonUnknown, false},
	{recordUnknown, unrecordedNone, socketThere, stateUnknown, reasonUnknown, false},
	{recordUnknown, unrecordedSome, socketMissing, stateUnknown, reasonUnknown, false},
	{recordUnknown, unrecordedSome, socketThere, stateUnknown, reasonUnknown, false},
	{recordUnknown, unrecordedUnseen, socketMissing, stateUnknown, reasonUnknown, false},
	{recordUnknown, unrecordedUnseen, socketThere, stateUnknown, reasonUnknown, false},
}

// phaseOf looks a combination up.
func phaseOf(r recorded, s unrecorded, c socket) phase {
	for _, row := range phases {
		if row.recorded == r && row.unrecorded == s && row.socket == c {
			return row
		}
	}
	panic("the table has no row for a pid file that is " + string(r) + ", unrecorded processes: " + string(s) + ", socket " + string(c))
}

// pair describes the state of a VM by the phases of its host agent and its driver.
type pair struct {
	agent, driver string
	state         string
	reason        string // with the process that runs; "": the driver's
}

const (
	reasonOrphan = "its driver (%s) runs, and no host agent"
	reasonIdle   = "its host agent (%s) runs, and no driver"
	reasonDeaf   = "its host agent (%s) runs, and does not answer"
)

// pairs joins the phases of the two processes. A host agent that refuses to answer, or has
// no socket, is broken; one that gives no answer in time is unknown.
var pairs = []pair{
	{providers.StateOff, providers.StateOff, providers.StateOff, ""},
	{providers.StateOff, providers.StateRunning, providers.StateBroken, reasonOrphan},
	{providers.StateOff, providers.StateBroken, providers.StateBroken, ""},
	{providers.StateOff, stateUnknown, stateUnknown, ""},
	{providers.StateRunning, providers.StateOff, providers.StateBroken, reasonIdle},
	{providers.StateRunning, providers.StateRunning, providers.StateRunning, ""},
	{providers.StateRunning, providers.StateBroken, providers.StateBroken, ""},
	{providers.StateRunning, stateUnknown, stateUnknown, ""},
	{providers.StateBroken, providers.StateOff, providers.StateBroken, reasonDeaf + ", and no driver runs"},
	{providers.StateBroken, providers.StateRunning, providers.StateBroken, reasonDeaf},
	{providers.StateBroken, providers.StateBroken, providers.StateBroken, ""},
	{providers.StateBroken, stateUnknown, stateUnknown, ""},
	{stateUnknown, providers.StateOff, stateUnknown, ""},
	{stateUnknown, providers.StateRunning, stateUnknown, ""},
	{stateUnknown, providers.StateBroken, stateUnknown, ""},
	{stateUnknown, stateUnknown, stateUnknown, ""},
}

// pairOf looks a combination up.
func pairOf(agent, driver string) pair {
	for _, row := range pairs {
		if row.agent == agent && row.driver == driver {
			return row
		}
	}
	panic("the table has no row for a host agent that is " + agent + " and a driver that is " + driver)
}
