package planner_test

import (
	"testing"

	"vmctl/planner"
)

// An object that others use stays, and is no change that the user could allow.
func TestTheKindOfABlock(t *testing.T) {
	for cause, want := range map[planner.Cause]planner.BlockKind{
		planner.CauseRetained: planner.Retained, planner.CauseRefused: planner.Refused, planner.CauseBusy: planner.Blocked,
	} {
		if got := (&planner.Block{Cause: cause}).Kind(); got != want {
			t.Errorf("%s: %s, want %s", cause, got, want)
		}
	}
	if p := (planner.Plan{Summary: planner.Summary{Retained: 1}}); !p.Pending() {
		t.Error("a plan by which an object stays that is to be destroyed has nothing to do")
	}
}
