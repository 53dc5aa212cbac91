package executor

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// precondition returns the reason for which a change must not go on; nil: there is none. Preconditions that the plan could not
// evaluate are asked before the first step that makes or changes the object: what they refer to was applied by then. The others
// held when the plan was made.
func (x *execution) precondition(step planner.Step) *providers.Problem {
	if !x.Plan.Changes[step.Change].Undecided || x.met[step.Change] || step.Phase == providers.PhaseTidy {
		return nil
	}
	for _, c := range x.conditions(step.Change, spec.Precondition) {
		f := &providers.Problem{Outcome: providers.Unsafe, Code: "precondition", Seen: []string{place(c)}, Next: providers.Vmctl("plan")}
		switch {
		case c.IsBad():
			f.Err = fmt.Errorf("a precondition of %s does not hold: %s", c.Address, c.Message)
			return f
		case c.Status == spec.CheckUnknown, step.Phase.Sinks():
			f.Err = fmt.Errorf("a precondition of %s is not known yet", c.Address)
			return f
		}
	}
	x.met[step.Change] = true
	return nil
}

// postcondition returns the failure of a change whose step has ended well as the last that others wait
// for; nil: there is none.
func (x *execution) postcondition(step planner.Step) *providers.Problem {
	rises := slices.ContainsFunc(x.steps[step.Change], func(i int) bool { return x.Plan.Steps[i].Phase.Rises() })
	counts := func(phase providers.Phase) bool { return phase.Rises() || !rises && phase.Sinks() }
	last := counts(step.Phase) && !slices.ContainsFunc(x.steps[step.Change], func(i int) bool {
		return i != step.ID && counts(x.Plan.Steps[i].Phase) && x.states[i] != ended
	})
	if !last {
		return nil
	}
	for _, c := range x.conditions(step.Change, spec.Postcondition) {
		err := errors.New(c.Message)
		switch c.Status {
		case spec.CheckPasses:
			continue
		case spec.CheckUnknown:
			err = errors.New("it is still unknown after its object was changed")
		case spec.CheckFails, spec.CheckError:
		}
		return &providers.Problem{
			Outcome: providers.Failed, Code: "postcondition", Seen: []string{place(c)},
			Next: providers.Vmctl("plan"), Err: fmt.Errorf("a postcondition of %s does not hold: %w", c.Address, err),
		}
	}
	return nil
}

// conditions evaluates the conditions of a kind that the plan wants to hold for a change.
func (x *execution) conditions(change int, kind spec.CheckKind) []spec.Check {
	c := &x.Plan.Changes[change]
	if !c.Checked || x.Conditions == nil {
		return nil
	}
	return slices.DeleteFunc(x.Conditions(c.Address, x.values), func(c spec.Check) bool { return c.Kind != kind })
}

func place(c spec.Check) string {
	return fmt.Sprintf("the condition at %s:%d", filepath.Base(c.Range.Filename), c.Range.Start.Line)
}
