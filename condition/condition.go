// Package condition models the readiness of resources: one condition per layer, such as SSH or an
// engine. It says when a report replaces a condition, and when a condition ends a wait. It has no
// clock: the caller passes the time.
package condition

import "time"

// SSHReady is the condition of a VM that its guest lets users in over SSH. EngineReady is that of a
// container engine, whichever software it is, that it answers. Settled is true once nothing is left to do
// about a resource.
const (
	SSHReady    = "ssh.ready"
	EngineReady = "engine.ready"
	Settled     = "settled"
)

// Status is the status of a condition.
type Status string

// The statuses. A condition is not applicable if nobody produces it, or if the resource is not
// meant to have that layer: a wait for it is over, and yet it is neither true nor false.
const (
	True          Status = "true"
	False         Status = "false"
	Unknown       Status = "unknown"
	NotApplicable Status = "not_applicable"
)

// The reasons that vmctl itself gives. A producer may give others, such as the code of its failure.
const (
	Ready         = "Ready"         // it was seen ready
	Adopted       = "Adopted"       // it was found running, and counts as ready
	Pending       = "Pending"       // it was made, and is not up yet
	Starting      = "Starting"      // it was started
	Stopped       = "Stopped"       // it was confirmed that it is off
	CreateFailed  = "CreateFailed"  // it could not be made
	StartFailed   = "StartFailed"   // it could not be started
	StopFailed    = "StopFailed"    // it could not be confirmed that it is off
	NotAwaited    = "NotAwaited"    // nobody waits for it
	NoProducer    = "NoProducer"    // nobody produces the condition
	NeverReported = "NeverReported" // its producer has not reported yet
	Stale         = "Stale"         // it was reported for an earlier generation only
)

// Report holds the state of one condition as its producer sees it.
type Report struct {
	Type    string // "ssh.ready"
	Status  Status
	Reason  string // a word for programs: "Stopped"
	Message string // for people
	// Terminal says of a false condition that waiting does not help: only another generation, or
	// another run, can make it true.
	Terminal bool
}

// Stamp says when and for which generation a report is made, and by whom.
type Stamp struct {
	Generation uint64 // of the spec that the producer has evaluated
	At         time.Time
	Producer   string
}

// Condition is the latest report about one condition.
type Condition struct {
	Report
	Generation uint64    // of the spec that the producer had evaluated
	Since      time.Time // the last time at which Status changed; zero: not known
	Producer   string    // "": nobody
}

// Outcome is the meaning of a condition for a wait.
type Outcome string

// The outcomes of a wait for a generation. Waiting: it goes on. Met: it is over. Failed: it is over,
// and the condition's Reason says why.
const (
	Waiting Outcome = "waiting"
	Met     Outcome = "met"
	Failed  Outcome = "failed"
)

// At returns the meaning of c for a wait for a generation. A report about an earlier generation
// ends no wait.
func (c Condition) At(target uint64) Outcome {
	if c.Generation < target {
		return Waiting
	}
	switch c.Status {
	case True, NotApplicable:
		return Met
	case False:
		if c.Terminal {
			return Failed
		}
		return Waiting
	case Unknown, "":
		return Waiting
	}
	panic("unknown status " + string(c.Status))
}

// Satisfied reports whether c is true or not applicable, for a generation or a later one.
func (c Condition) Satisfied(target uint64) bool { return c.At(target) == Met }

// stamped returns c after a report. A report about an earlier generation than that of c is late, and
// changes nothing. Since stays as long as the status does.
func (c Condition) stamped(r Report, s Stamp) Condition {
	if s.Generation < c.Generation {
		return c
	}
	if r.Status != False {
		r.Terminal = false
	}
	now := Condition{Report: r, Generation: s.Generation, Since: s.At, Producer: s.Producer}
	if r.Status == c.Status {
		now.Since = c.Since
	}
	return now
}
