package planner_test

import (
	"testing"

	"vmctl/planner"
	"vmctl/spec"
)

// A kind is inhabited if others are inside of its objects, or run in them.
func TestIsInhabited(t *testing.T) {
	for kind, want := range map[spec.Kind]bool{
		spec.VM: true, spec.Engine: true, spec.Workspace: true, spec.Disk: false, spec.Job: false, spec.Container: false,
	} {
		if got := planner.IsInhabited(kind); got != want {
			t.Errorf("IsInhabited(%s) = %t", kind, got)
		}
	}
}
