package lima

import "vmctl/providers"

// count tells the number of processes of a role that an instance has.
type count string

const (
	none    count = "none"
	one     count = "one"
	several count = "several"
	unseen  count = "unseen" // the process table could not be read
)

const stateUnknown = "" // nothing is done to such an instance

// phase is the run state of an instance by its processes. The monitor of QEMU and the events of the host
// agent refine a running state.
type phase struct {
	agents, drivers count
	state           string
	reason          string // of a broken or an unknown state
}

const (
	reasonOrphan = "QEMU (%[2]s) runs without a host agent"
	reasonIdle   = "its host agent (%[1]s) runs, and QEMU does not"
	reasonTwice  = "several processes run it: host agents %[1]s, QEMU %[2]s"
	reasonUnseen = "its processes could not be read"
	reasonDriver = "its host agent (%s) runs, and its vmType is %q: this build sees the processes of QEMU only"
)

// wslReasons maps the reasons to those of an instance that is a distribution of WSL (%[2]s).
var wslReasons = map[string]string{
	reasonOrphan: "the distribution %[2]s runs without a host agent",
	reasonIdle:   "its host agent (%[1]s) runs, and the distribution %[2]s does not",
	reasonTwice:  "several host agents run it: %[1]s",
	reasonUnseen: "it could not be read whether it runs",
}

// phases is the state table of an instance. A pid file proves nothing: processes are found by their
// arguments, so that a recycled pid, a zombie and a lost pid file change nothing.
var phases = []phase{
	{none, none, providers.StateOff, ""},
	{none, one, providers.StateBroken, reasonOrphan},
	{none, several, providers.StateBroken, reasonTwice},
	{one, none, providers.StateBroken, reasonIdle},
	{one, one, providers.StateRunning, ""},
	{one, several, providers.StateBroken, reasonTwice},
	{several, none, providers.StateBroken, reasonTwice},
	{several, one, providers.StateBroken, reasonTwice},
	{several, several, providers.StateBroken, reasonTwice},
	{unseen, none, stateUnknown, reasonUnseen},
	{unseen, one, stateUnknown, reasonUnseen},
	{unseen, several, providers.StateBroken, reasonTwice},
	{none, unseen, stateUnknown, reasonUnseen},
	{one, unseen, stateUnknown, reasonUnseen},
	{several, unseen, providers.StateBroken, reasonTwice},
	{unseen, unseen, stateUnknown, reasonUnseen},
}

// phaseOf returns the row of a combination.
func phaseOf(agents, drivers count) phase {
	for _, row := range phases {
		if row.agents == agents && row.drivers == drivers {
			return row
		}
	}
	panic("the table has no row for host agents: " + string(agents) + ", drivers: " + string(drivers))
}

// monitorStates maps the run states of QEMU (RunState of its QMP reference) to those of a VM. The
// others are broken: the guest does not go on by itself.
var monitorStates = map[string]string{
	"running": providers.StateRunning, "paused": providers.StatePaused, "suspended": providers.StatePaused,
	"prelaunch": providers.StateRunning, "inmigrate": providers.StateRunning, "debug": providers.StatePaused,
	"save-vm": providers.StateRunning, "restore-vm": providers.StateRunning, "finish-migrate": providers.StateRunning,
	"shutdown": providers.StateEnding,
}
