package executor_test

import (
	"testing"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
)

func TestSummaryOfTwoRuns(t *testing.T) {
	first, second := spec.Address{Kind: spec.VM, Name: "a"}, spec.Address{Kind: spec.VM, Name: "b"}
	of := func(a spec.Address) executor.Summary {
		step := planner.Step{}
		step.Address = a
		result := []executor.StepResult{{Step: step}}
		return executor.Summary{Done: result, Failed: result, Warned: result, NotRun: []planner.Step{step}, Down: []spec.Address{a}}
	}
	both := of(first).Then(of(second))
	for name, results := range map[string][]executor.StepResult{"done": both.Done, "failed": both.Failed, "warned": both.Warned} {
		if len(results) != 2 || results[0].Step.Address != first || results[1].Step.Address != second {
			t.Errorf("%s: %v", name, results)
		}
	}
	if len(both.NotRun) != 2 || len(both.Down) != 2 || both.Interrupted {
		t.Errorf("the rest: %+v", both)
	}
	if cut := (executor.Summary{Interrupted: true}); !cut.Then(of(first)).Interrupted || !of(first).Then(cut).Interrupted {
		t.Error("an interrupt is forgotten")
	}
}
