package view

import (
	"time"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
)

// EventDocument is one line of `apply --json`.
type EventDocument struct {
	FormatVersion string           `json:"format_version"`
	Type          string           `json:"type"`
	At            time.Time        `json:"at"`
	Step          *StepDocument    `json:"step,omitempty"`
	DeadlineS     float64          `json:"deadline_s,omitempty"`
	Text          string           `json:"text,omitempty"`
	How           string           `json:"how,omitempty"`
	Evidence      []string         `json:"evidence,omitempty"`
	ElapsedS      float64          `json:"elapsed_s,omitempty"`
	Failure       *ProblemDocument `json:"failure,omitempty"`
	// Conditions holds the conditions that the event has changed, of the awaited generation or a later one.
	Conditions  []ConditionDocument `json:"conditions,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"` // halted: by a signal, or because the time is up
}

// EventJSON returns the line of an event, for a run with own flags.
func EventJSON(e executor.Event, own OwnFlags) EventDocument {
	d := EventDocument{
		FormatVersion: FormatVersion, Type: string(e.Kind), At: e.At.UTC(), DeadlineS: e.Deadline.Seconds(),
		Text: e.Text, How: string(e.How), Evidence: e.Evidence, ElapsedS: e.Elapsed.Seconds(),
		Failure: failureJSON(e.Failure, own), Interrupted: e.Interrupted, Conditions: conditionsJSON(e.Conditions),
	}
	if e.Kind != executor.Halted {
		step := stepJSON(e.Step)
		d.Step = &step
	}
	return d
}

func failureJSON(f *providers.Problem, own OwnFlags) *ProblemDocument {
	if f == nil {
		return nil
	}
	p := ProblemOf(f, own)
	p.Seen, p.Next = list(p.Seen), list(p.Next)
	return &p
}

// ProblemOf describes a problem, for a run with own flags.
func ProblemOf(p *providers.Problem, own OwnFlags) ProblemDocument {
	code := p.Code
	if code == "" {
		code = "step_" + string(p.Outcome)
	}
	return ProblemDocument{Code: code, Message: p.Error(), Seen: p.Seen, Next: own.Advice(p.Next)}
}

// PlanEvent is the first line of `apply --json`: the plan.
type PlanEvent struct {
	FormatVersion string       `json:"format_version"`
	Type          string       `json:"type"` // plan
	Plan          PlanDocument `json:"plan"`
}

// SummaryEvent is the last line of a plan in `apply --json`: the results of its steps.
type SummaryEvent struct {
	FormatVersion string                    `json:"format_version"`
	Type          string                    `json:"type"` // summary
	OK            bool                      `json:"ok"`
	Done          []ResultDocument          `json:"done"`
	Failed        []ResultDocument          `json:"failed"`
	Warned        []ResultDocument          `json:"warned"`
	NotRun        []StepDocument            `json:"not_run"`
	Down          []string                  `json:"down"`
	Interrupted   bool                      `json:"interrupted"`
	Next          []string                  `json:"next"`
	Outputs       map[string]OutputDocument `json:"outputs"`
	Checks        []CheckEntry              `json:"checks"`   // every condition of the spec, once an apply is over
	Deferred      []DeferredEntry           `json:"deferred"` // addresses that the next plan reads; none: no plan follows
	Final         bool                      `json:"final"`    // no other plan follows
	Totals        *TotalsDocument           `json:"totals,omitempty"`
}

// TotalsDocument counts the steps of all plans that were carried out. Only the last summary
// has it.
type TotalsDocument struct {
	Done   int `json:"done"`
	Failed int `json:"failed"`
	Warned int `json:"warned"`
	NotRun int `json:"not_run"`
}

// ResultDocument is the result of one step as JSON.
type ResultDocument struct {
	Step     StepDocument     `json:"step"`
	How      string           `json:"how"`
	ElapsedS float64          `json:"elapsed_s"`
	Failure  *ProblemDocument `json:"failure"`
}

// ErrorEvent is the line of `apply --json` that says why it failed.
type ErrorEvent struct {
	Type string `json:"type"` // error
	FailureDocument
}

// SummaryMore holds the parts of a summary beside the results of the steps.
type SummaryMore struct {
	Next     []string // the next commands
	Outputs  map[string]OutputDocument
	Checks   []CheckEntry
	Deferred []planner.Deferred // addresses that the next plan reads
	Before   executor.Summary   // of the plans before
	Own      OwnFlags
}

// SummaryJSON returns the line of a summary.
func SummaryJSON(s executor.Summary, more SummaryMore) SummaryEvent {
	outputs := more.Outputs
	if outputs == nil {
		outputs = map[string]OutputDocument{}
	}
	d := SummaryEvent{
		FormatVersion: FormatVersion, Type: "summary", OK: s.OK(),
		Done: results(s.Done, more.Own), Failed: results(s.Failed, more.Own), Warned: results(s.Warned, more.Own), NotRun: []StepDocument{},
		Down: Addresses(s.Down), Interrupted: s.Interrupted, Next: list(more.Next), Outputs: outputs, Checks: list(more.Checks),
		Deferred: deferredJSON(more.Deferred),
	}
	if d.Final = !s.OK() || len(more.Deferred) == 0; d.Final {
		d.Totals = &TotalsDocument{
			Done: len(more.Before.Done) + len(s.Done), Failed: len(more.Before.Failed) + len(s.Failed),
			Warned: len(more.Before.Warned) + len(s.Warned), NotRun: len(more.Before.NotRun) + len(s.NotRun),
		}
	}
	for _, step := range s.NotRun {
		d.NotRun = append(d.NotRun, stepJSON(step))
	}
	return d
}

func results(all []executor.StepResult, own OwnFlags) []ResultDocument {
	docs := []ResultDocument{}
	for _, r := range all {
		docs = append(docs, ResultDocument{
			Step: stepJSON(r.Step), How: string(r.How), ElapsedS: r.Elapsed.Seconds(), Failure: failureJSON(r.Failure, own),
		})
	}
	return docs
}
