package machine

import (
	"time"

	"vmctl/providers"
)

// Steps collects the steps of a change, each after the one before it.
type Steps struct {
	Change  providers.Change
	Words   map[string]providers.Words // by operation
	Timeout time.Duration              // of a step that does not say otherwise
	All     []providers.Step
}

// Add adds a step for the object with an ID, and returns it to be filled in: it is valid until the next one is added.
func (s *Steps) Add(op string, phase providers.Phase, id providers.ID) *providers.Step {
	s.All = Append(s.All, s.Change, providers.Step{Op: op, Words: s.Words[op], Phase: phase, Object: id, Name: s.Change.Name, Timeout: s.Timeout})
	return &s.All[len(s.All)-1]
}
