package providers_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
)

func TestProblem(t *testing.T) {
	lost := errors.New("the disk is gone")
	for _, test := range []struct {
		name    string
		problem *providers.Problem
		want    string
		outcome providers.Outcome
	}{
		{"a refused change", providers.Refuse("its memory is saved", nil), "its memory is saved", providers.Unsafe},
		{"with a cause", &providers.Problem{Outcome: providers.Failed, Code: "no_disk", Err: lost}, "the disk is gone", providers.Failed},
		{"without a cause", &providers.Problem{Outcome: providers.Stale, Code: "stale_plan"}, "stale_plan", providers.Stale},
	} {
		if got := test.problem.Error(); got != test.want || test.problem.Outcome != test.outcome {
			t.Errorf("%s: %s %q, want %s %q", test.name, test.problem.Outcome, got, test.outcome, test.want)
		}
	}
	if !errors.Is(&providers.Problem{Err: lost}, lost) {
		t.Error("a problem hides its cause")
	}
	next := providers.SayVmctl("free the disk: ", "disk", "unlock", "disk.data")
	if d := cmp.Diff(next, providers.Refuse("its lock is stale", next).Next); d != "" {
		t.Errorf("next of a refused change (-want +got):\n%s", d)
	}
}
