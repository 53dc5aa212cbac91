// Package executor carries out a plan: intent before effect, steps side by side
// as far as the plan's order allows, and a stop at the first failure that
// matters. It alone calls Provider.Do and it alone writes records.
package executor

import (
	"time"

	"vmctl/condition"
	"vmctl/planner"
	"vmctl/providers"
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
	// ConditionChanged: a running step reported a condition. Reports of earlier generations than the awaited
	// one are no events, and each is one event.
	ConditionChanged EventKind = "condition"
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
	// Conditions holds the conditions that the event has changed, of the awaited generation or a later one: of
	// ConditionChanged, StepDone, StepFailed and StepWarned.
	Conditions []condition.Condition
	// Interrupted says of Halted that the context ended.
	Interrupted bool
}
