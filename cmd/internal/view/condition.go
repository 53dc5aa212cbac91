package view

import (
	"time"

	"vmctl/condition"
)

// ConditionDocument is a condition as JSON.
type ConditionDocument struct {
	Type       string     `json:"type"`   // "vm.running", "ssh.ready"
	Status     string     `json:"status"` // true | false | unknown | not_applicable
	Reason     string     `json:"reason"` // a word for programs
	Message    string     `json:"message"`
	Terminal   bool       `json:"terminal"`            // false for good: waiting does not help
	Generation uint64     `json:"observed_generation"` // of the spec that its producer has evaluated
	Since      *time.Time `json:"last_transition"`     // null: not known
	Producer   string     `json:"producer"`            // "": nobody
}

// ConditionJSON returns a condition as JSON.
func ConditionJSON(c condition.Condition) ConditionDocument {
	d := ConditionDocument{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Terminal: c.Terminal,
		Generation: c.Generation, Producer: c.Producer,
	}
	if !c.Since.IsZero() {
		since := c.Since.UTC()
		d.Since = &since
	}
	return d
}

// Condition returns the condition of a document.
func (d ConditionDocument) Condition() condition.Condition {
	c := condition.Condition{
		Report:     condition.Report{Type: d.Type, Status: condition.Status(d.Status), Reason: d.Reason, Message: d.Message, Terminal: d.Terminal},
		Generation: d.Generation, Producer: d.Producer,
	}
	if d.Since != nil {
		c.Since = *d.Since
	}
	return c
}

func conditionsJSON(all []condition.Condition) []ConditionDocument {
	docs := make([]ConditionDocument, 0, len(all))
	for _, c := range all {
		docs = append(docs, ConditionJSON(c))
	}
	return docs
}

// conditionLine returns a condition in words: `ssh.ready false: no answer`.
func conditionLine(c condition.Condition) string {
	text := c.Type + " " + statusWord(c.Status)
	switch {
	case c.Message != "":
		text += ": " + c.Message
	case c.Reason != "" && c.Status != condition.True:
		text += ": " + c.Reason
	}
	return text
}

func statusWord(s condition.Status) string {
	switch s {
	case condition.True, condition.False, condition.Unknown:
		return string(s)
	case condition.NotApplicable:
		return "not applicable"
	default:
		return "unknown"
	}
}
