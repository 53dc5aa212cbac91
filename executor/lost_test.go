package executor_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/executor"
	"vmctl/state"
)

// The lock is lost while a step runs: that step ends and is reported, though it
// cannot be written down any more, and no other begins.
func TestALostLockIsTheLastStep(t *testing.T) {
	b := newBench(t, two)
	dir := t.TempDir()
	b.folder = stateIn(dir)
	b.run.Watch = func(e executor.Event) {
		if e.Kind != executor.StepStarted || e.Step.Op != "start" {
			return
		}
		if err := os.Remove(filepath.Join(dir, "lock")); err != nil {
			t.Error(err)
		}
	}
	summary, err := b.apply(t.Context())
	var lost *state.LostLockError
	if !errors.As(err, &lost) {
		t.Errorf("apply: %v, want a *state.LostLockError", err)
	}
	want := []string{
		"step_started define vm.a", "step_done define vm.a", "step_started start vm.a", "step_done start vm.a", "halted",
	}
	if diff := cmp.Diff(want, b.log); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"define vm.a", "start vm.a"}, results(summary.Done)); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}
