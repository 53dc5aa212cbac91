// Package executor carries out a plan: intent before effect, steps side by side
// as far as the plan's order allows, and a stop at the first failure that
// matters. It alone calls Provider.Do and it alone writes records.
package executor

import (
	"time"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// EventKind is a kind of event.
type EventKind string

// The kinds of events.
const (
	StepWaiting  EventKind = "step_waiting" // for those inside the VM that the step will take down
	StepStarted  EventKind = "step_started"
	StepProgress EventKind = "step_progress"
	StepDone     EventKind = "step_done"
	StepFailed   EventKind = "step_failed"
	StepWarned   EventKind = "step_warned" // a diagnostic step failed
	Halted       EventKind = "halted"      // no further change begins
)

// Event is one thing that happened during Apply. Events of one step arrive in
// order and never at the same time as another's.
type Event struct {
	Kind     EventKind
	At       time.Time
	Step     planner.Step
	Deadline time.Duration // StepStarted: how long the step may take; StepWaiting: how long they are waited for
	Text     string        // StepProgress: what it says; StepWaiting: who is inside; Halted: why
	How      providers.How // StepDone
	Evidence []string      // StepDone
	Failure  *providers.Failure
	Elapsed  time.Duration // StepDone, StepFailed, StepWarned
	// Interrupted says of Halted that the context ended.
	Interrupted bool
}

// Summary is how an apply ended.
type Summary struct {
	Done        []StepResult // by address, the steps of one in the plan's order; so are the others
	Failed      []StepResult // contractual failures
	Warned      []StepResult // diagnostic failures
	NotRun      []planner.Step
	Down        []spec.Address // taken down by this apply and not brought up again
	Interrupted bool           // the context ended before the last step had
}

// StepResult is how one step ended.
type StepResult struct {
	Step    planner.Step
	How     providers.How
	Failure *providers.Failure
	Elapsed time.Duration
}

// OK reports whether everything that matters was done.
func (s Summary) OK() bool { return len(s.Failed) == 0 && len(s.NotRun) == 0 && !s.Interrupted }
