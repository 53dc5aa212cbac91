package sim

import "vmctl/providers/fault"

// The kinds of faults that strike in the middle of a step, beside those of every provider.
const (
	kindPartial    = "partial"        // half of it is done, and it fails
	kindIgnore     = "ignore_request" // the VM does not end when it is asked to
	kindLate       = "late_exit"      // the VM ends a delay after it was asked to
	kindLeak       = "leak_pid"       // the VM ends, and its pid file stays
	kindDie        = "die"            // the VM ends by itself, and leaves its files
	kindAgentDies  = "agent_dies"     // the host agent ends by itself, and leaves its files and its driver
	kindUnkillable = "unkillable"     // neither a request nor force ends the VM
)

// faultOps lists the operations that each kind of fault can strike.
var faultOps = map[string][]string{
	kindPartial:    {opDefine, opRedefine, opGrow, opUpload, opStart, opStop, opRecover, opDelete, opDetach, opUnmark},
	kindIgnore:     {opStop, opRecover},
	kindLate:       {opStop, opRecover},
	kindLeak:       {opStop, opRecover},
	kindDie:        {opStart, opWaitReady},
	kindUnkillable: {opStop, opRecover},
}

// processFaultOps lists further operations of VMs with processes: the process itself hangs, or
// is slow to come up.
var processFaultOps = map[string][]string{
	fault.Hang: {opStart},
	fault.Slow: {opStart},
}

// agentFaultOps lists further operations of VMs with host agents.
var agentFaultOps = map[string][]string{
	kindAgentDies: {opStart, opWaitReady},
}
