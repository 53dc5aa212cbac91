package view_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// A wait for visitors shows them, its limit and its time. It ends with a halt, or when its
// step begins.
func TestAWaitForThoseInsideIsShown(t *testing.T) {
	var out bytes.Buffer
	p := view.Progress{Screen: view.Screen{W: &out}, Silence: 10 * time.Second}
	at := func(second int) time.Time { return time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC) }
	step := func(id int, name string) planner.Step {
		return planner.Step{ID: id, Step: providers.Step{Op: "stop", Words: machine.Words("stop"), Address: spec.Address{Kind: spec.VM, Name: name}}}
	}
	wait := func(second int, s planner.Step, who string) {
		p.Watch(executor.Event{Kind: executor.StepWaiting, At: at(second), Step: s, Deadline: time.Hour, Text: who})
	}
	wait(0, step(0, "a"), "one; two")
	wait(1, step(1, "b"), "three")
	wait(5, step(0, "a"), "two")
	p.Tick(at(12))
	p.Watch(executor.Event{Kind: executor.StepStarted, At: at(13), Step: step(0, "a"), Deadline: time.Minute})
	p.Watch(executor.Event{Kind: executor.Halted, At: at(14), Text: "vm.c failed: no further change begins"})
	p.Tick(at(50))
	want := `vm.a: waiting for those inside (at most 1h): one; two
vm.b: waiting for those inside (at most 1h): three
vm.a: waiting for those inside (at most 1h): two
vm.b: still waiting for those inside, for 11s of at most 1h
vm.a: stopping (at most 1m)
Stopping: vm.c failed: no further change begins
  waiting for vm.a: stopping, for 1s of at most 1m
vm.a: still stopping, for 37s of at most 1m
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("lines (-want +got):\n%s", d)
	}
}
