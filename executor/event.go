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
	StepWaiting  EventKind = "step_waiting" // the step waits for the holders in the VM that it will take down
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
	Deadline time.Duration // StepStarted: the longest time for the step; StepWaiting: the longest wait
	Text     string        // StepProgress: the message; StepWaiting: the holders; Halted: the reason
	How      providers.How // StepDone
	Evidence []string      // StepDone
	Failure  *providers.Problem
	Elapsed  time.Duration // StepDone, StepFailed, StepWarned
	// Interrupted says of Halted that the context ended.
	Interrupted bool
}

// Summary describes the outcome of an apply.
type Summary struct {
	Done        []StepResult // by address, then in the plan's order, as the other lists are
	Failed      []StepResult // contractual failures
	Warned      []StepResult // diagnostic failures
	NotRun      []planner.Step
	Down        []spec.Address // taken down by this apply and not brought up again
	Interrupted bool           // the context ended before the last step had
}

// StepResult describes the outcome of one step.
type StepResult struct {
	Step    planner.Step
	How     providers.How
	Failure *providers.Problem
	Elapsed time.Duration
}

// OK reports whether no contractual step failed, every step ran, and the apply was not
// interrupted.
func (s Summary) OK() bool { return len(s.Failed) == 0 && len(s.NotRun) == 0 && !s.Interrupted }
