package executor

import (
	"testing"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// What is inside of an object that goes down only for a changed value is let go of only then, however
// deep it is inside.
func TestReleasesWaitForTheDecision(t *testing.T) {
	vm, other := spec.Address{Kind: spec.VM, Name: "a"}, spec.Address{Kind: spec.VM, Name: "b"}
	box := spec.Address{Kind: "box", Name: "c"}
	inside := func(all ...spec.Address) planner.Change {
		return planner.Change{Place: planner.Place{Inside: all[0], Around: all}}
	}
	release := func(change int) planner.Step {
		return planner.Step{Step: providers.Step{Phase: providers.PhaseRelease}, Change: change}
	}
	x := &execution{Run: Run{Plan: &planner.Plan{
		Changes: []planner.Change{
			{Change: providers.Change{Address: vm}, Conditional: true},
			inside(box, vm), inside(vm), inside(other),
		},
		Steps: []planner.Step{release(1), release(2), release(3)},
	}}}
	c := x.conditionals()
	for step, want := range []int{0, 0, -1} {
		if got := c.decidingChange(step); got != want {
			t.Errorf("change %d decides about step %d, want %d", got, step, want)
		}
	}
}
