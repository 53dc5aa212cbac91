package providers

// Applies is the way in which an edit reaches an object, from least to most disruptive.
type Applies string

// The ways an edit applies. Their order is Rank.
const (
	Live    Applies = "live"
	Restart Applies = "restart"
	Replace Applies = "replace"
	Refused Applies = "refused"
)

// Rank orders Applies: Live < Restart < Replace < Refused.
func (a Applies) Rank() int {
	switch a {
	case Live:
		return 1
	case Restart:
		return 2
	case Replace:
		return 3
	case Refused:
		return 4
	default:
		return 0
	}
}

// Action is the plan's action on one address.
type Action string

// The actions of a plan.
const (
	Create    Action = "create"
	Update    Action = "update" // in place, without downtime
	RestartIt Action = "restart"
	ReplaceIt Action = "replace"
	Destroy   Action = "destroy"
	Start     Action = "start"
	Stop      Action = "stop"
	Adopt     Action = "adopt"   // writes only the record
	Import    Action = "import"  // marks an object that vmctl did not make, and no more
	Forget    Action = "forget"  // removes only the record
	Release   Action = "release" // releases a resource inside a VM before the VM goes down
	Recover   Action = "recover"
	NoOp      Action = "noop"
)

// The run states that every provider calls by the same word. A paused object is not running
// (Object.Running is false) and not off: it keeps its memory. A broken object has a process
// that does not work: it must be taken down before it is off or can be started. An ending
// object is on its way down: vmctl has to wait for it.
const (
	StateRunning = "running"
	StatePaused  = "paused"
	StateBroken  = "broken"
	StateEnding  = "ending"
	StateOff     = "off"
)

// Phase is a step's place in the order of a plan.
type Phase string

// The phases, in order. PhasePrepare changes nothing that anybody sees: what may fail is done before the users of the
// object go down. Those from PhaseRecover to PhaseRemove take something down or away: they sink. Those from PhaseReserve to PhaseResume make something or bring it up: they
// rise.
const (
	PhasePrepare Phase = "prepare"
	PhaseRecover Phase = "recover"
	PhaseRelease Phase = "release"
	PhaseDown    Phase = "down"
	PhaseFree    Phase = "free" // frees claims that another change takes
	PhaseRemove  Phase = "remove"
	PhaseReserve Phase = "reserve"
	PhaseMake    Phase = "make"
	PhaseChange  Phase = "change"
	PhaseUp      Phase = "up"
	PhaseReady   Phase = "ready"
	PhaseResume  Phase = "resume" // brings back what was released, once the object around it is up again
	PhaseTidy    Phase = "tidy"
)

// Phases lists every phase in order.
func Phases() []Phase {
	return []Phase{
		PhasePrepare, PhaseRecover, PhaseRelease, PhaseDown, PhaseFree, PhaseRemove, PhaseReserve, PhaseMake,
		PhaseChange, PhaseUp, PhaseReady, PhaseResume, PhaseTidy,
	}
}

// Sinks reports whether a step of this phase takes something down or away.
func (p Phase) Sinks() bool {
	switch p {
	case PhaseRecover, PhaseRelease, PhaseDown, PhaseFree, PhaseRemove:
		return true
	case PhasePrepare, PhaseReserve, PhaseMake, PhaseChange, PhaseUp, PhaseReady, PhaseResume, PhaseTidy:
		return false
	}
	panic("unknown phase " + string(p))
}

// Rises reports whether a step of this phase makes something or brings it up.
func (p Phase) Rises() bool { return !p.Sinks() && p != PhaseTidy && p != PhasePrepare }

// Class is the meaning of a step's failure.
type Class string

// Contractual failures stop the run, diagnostic ones warn.
const (
	Contractual Class = "contractual"
	Diagnostic  Class = "diagnostic"
)

// Risk is the worst effect of a step on somebody who uses the object.
type Risk string

// The risks.
const (
	NoRisk   Risk = "none"
	Downtime Risk = "downtime"
	DataLoss Risk = "data_loss"
)

// How is the way in which a step ended.
type How string

// The ways a step ends well.
const (
	Done        How = "done"
	AlreadyTrue How = "already" // the goal held before the step acted
	Graceful    How = "graceful"
	Forced      How = "forced"
	AlreadyGone How = "already_gone"
	NotNeeded   How = "not_needed" // the step was left out: its reason did not come about
)

// FindingKind is a kind of finding.
type FindingKind string

// The kinds of findings.
const (
	FindDrift       FindingKind = "drift"        // an attribute or run state differs from the record
	FindMissing     FindingKind = "missing"      // recorded, and gone
	FindOrphan      FindingKind = "orphan"       // ours, and neither in the spec nor recorded
	FindCopy        FindingKind = "copy"         // bears the mark of another object
	FindPartial     FindingKind = "partial"      // half made
	FindLeftover    FindingKind = "leftover"     // remains of an object that is gone
	FindBroken      FindingKind = "broken"       // exists and does not work
	FindSnapshot    FindingKind = "snapshot"     // others made snapshots, overlays or copies of its disks
	FindNoKey       FindingKind = "no_key"       // this machine cannot log into it
	FindCrashed     FindingKind = "crashed"      // is off after a crash
	FindInterrupted FindingKind = "interrupted"  // a step of an earlier run did not end
	FindDirty       FindingKind = "dirty"        // holds work that exists nowhere else
	FindStaleLock   FindingKind = "stale_lock"   // a lock whose holder is gone
	FindHeldLock    FindingKind = "held_lock"    // a lock whose holder lives
	FindBusy        FindingKind = "busy"         // somebody is at work in an object that is to be taken down
	FindOutdated    FindingKind = "outdated"     // runs with another version of its system's software
	FindUnmanaged   FindingKind = "unmanaged"    // not ours
	FindRetained    FindingKind = "retained"     // once ours, released, and still there
	FindStateBehind FindingKind = "state_behind" // the record is older than the mark
	FindHookFailed  FindingKind = "hook_failed"  // a command that its block lets run in it did not succeed
	FindUnsynced    FindingKind = "unsynced"     // commits that its block lets an apply exchange cannot be exchanged as things are
	FindUnsealed    FindingKind = "unsealed"     // its record in a guest is not the one that this host wrote
	FindJobEnded    FindingKind = "job_ended"    // a job that has not completed
	FindNotRun      FindingKind = "not_run"      // a job that is not run, because it may have run before
	FindCheck       FindingKind = "failed_check" // a condition of the spec is false
	FindUnasked     FindingKind = "unasked"      // what its block asks for each time could not be asked, such as a registry
	FindUnknown     FindingKind = "unknown"      // could not be read
)

// Outcome is the way in which a step failed.
type Outcome string

// The outcomes of a failed step.
const (
	Failed  Outcome = "failed"
	Timeout Outcome = "timeout" // its deadline expired
	Unsafe  Outcome = "refused" // going on could lose something
	Stale   Outcome = "stale"   // the world differs from the plan
)
