package condition

import "fmt"

// Settle returns the condition Settled of a resource. It is true if all conditions are satisfied for a
// generation. Else it is false with the reason and the message of the first that is not.
func Settle(all []Condition, target uint64) Condition {
	settled := Condition{Report: Report{Type: Settled, Status: True, Reason: "Settled"}, Generation: target}
	for _, c := range all {
		if c.Since.After(settled.Since) {
			settled.Since = c.Since
		}
	}
	for _, c := range all {
		if c.Satisfied(target) {
			continue
		}
		settled.Report = blocking(c, target)
		settled.Since, settled.Producer = c.Since, c.Producer
		return settled
	}
	return settled
}

// blocking returns the report that a resource is not settled because of one of its conditions.
func blocking(c Condition, target uint64) Report {
	r := Report{Type: Settled, Status: False, Reason: c.Reason, Message: c.Type + " is " + string(c.Status), Terminal: c.Terminal}
	switch {
	case c.Generation < target && c.Generation == 0:
	case c.Generation < target:
		if c.Status == True || c.Status == NotApplicable || c.Reason == "" {
			r.Reason = Stale
		}
		r.Terminal = false
		r.Message = fmt.Sprintf("%s is %s for generation %d, and not reported for generation %d", c.Type, c.Status, c.Generation, target)
		if c.Producer != "" {
			r.Message += " by " + c.Producer
		}
	}
	if c.Message != "" {
		r.Message += ": " + c.Message
	}
	return r
}

// Named is the condition Settled of one resource.
type Named struct {
	Name string // its address
	Condition
}

// SettleAll returns the condition Settled of a run from those of its resources. It forwards the reason
// of the first that is not settled, and names that one.
func SettleAll(all []Named) Condition {
	run := Condition{Report: Report{Type: Settled, Status: True, Reason: "Settled"}}
	more := 0
	for _, n := range all {
		switch {
		case n.Status == True && run.Status == True:
			if n.Since.After(run.Since) {
				run.Since = n.Since
			}
		case n.Status == True:
		case run.Status == True:
			run = n.Condition
			run.Generation = 0 // of one resource, and not of the run
			run.Message = n.Name + ": " + n.Message
		default:
			more++
		}
	}
	if more > 0 {
		run.Message += fmt.Sprintf(" (and %d more)", more)
	}
	return run
}
