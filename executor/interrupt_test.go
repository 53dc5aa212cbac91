package executor_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/executor"
	"vmctl/providers"
	"vmctl/spec"
)

// An interrupt is reported while the step that it waits for still runs: here that step ends only
// after the report.
func TestAnInterruptIsSaidAtOnce(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan struct{})
	b.memory.hold["start vm.a"] = said
	b.run.Watch = func(e executor.Event) {
		switch {
		case e.Kind == executor.StepStarted && e.Step.Op == "start":
			cancel()
		case e.Interrupted:
			close(said)
		}
	}
	if summary, err := b.apply(ctx); err != nil || !summary.Interrupted {
		t.Fatal(summary, err)
	}
	want := []string{
		"step_started define vm.a", "step_done define vm.a", "step_started start vm.a", "halted", "step_done start vm.a",
	}
	if diff := cmp.Diff(want, b.log); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// An interrupt is reported even if a failure has stopped the run already.
func TestAnInterruptAfterAFailureIsSaid(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\nvm \"b\" {}\n")
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan struct{})
	b.memory.hold["define vm.a"] = said
	b.memory.fail["define vm.b"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	var halts []string
	b.run.Watch = func(e executor.Event) {
		if e.Kind != executor.Halted {
			return
		}
		halts = append(halts, e.Text)
		if e.Interrupted {
			close(said)
			return
		}
		cancel()
	}
	if summary, err := b.apply(ctx); err != nil || !summary.Interrupted {
		t.Fatal(summary, err)
	}
	want := []string{"vm.b failed: no further change begins", "interrupted: no further change begins"}
	if diff := cmp.Diff(want, halts); diff != "" {
		t.Errorf("halts (-want +got):\n%s", diff)
	}
}

// row L30: all are requested before any has ended, and the report is by address,
// in whatever order they end
func TestStopsRunSideBySideAndAreReportedByAddress(t *testing.T) {
	b := newBench(t, "vm \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\"])\n}\n")
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"w\" {\n  for_each = toset([\"a\", \"b\", \"c\"])\n  running = false\n}\n")
	hold := map[string]chan struct{}{}
	for _, key := range []string{"a", "b", "c"} {
		hold[key] = make(chan struct{})
		b.memory.hold[fmt.Sprintf("stop vm.w[%q]", key)] = hold[key]
	}
	requested := 0
	b.run.Watch = func(e executor.Event) {
		switch {
		case e.Step.Op != "stop":
		case e.Kind == executor.StepStarted:
			if requested++; requested == 3 {
				close(hold["c"])
			}
		case e.Kind == executor.StepDone && e.Step.Address.Key == "c":
			close(hold["b"])
		case e.Kind == executor.StepDone && e.Step.Address.Key == "b":
			close(hold["a"])
		}
	}
	summary, err := b.apply(t.Context())
	if err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	if diff := cmp.Diff([]string{`stop vm.w["a"]`, `stop vm.w["b"]`, `stop vm.w["c"]`}, results(summary.Done)); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// row E18, of goroutines: a wait whose context has ended leaves none behind
func TestAnInterruptedWaitLeavesNothingRunning(t *testing.T) {
	b := newBench(t, "vm \"a\" {}\n")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	b.memory.hold["wait_ssh vm.a"] = make(chan struct{})
	b.run.Watch = func(e executor.Event) {
		if e.Kind == executor.StepStarted && e.Step.Op == "wait_ssh" {
			cancel()
		}
	}
	summary, err := b.apply(ctx)
	if err != nil || len(summary.Failed) != 1 {
		t.Fatal(summary, err)
	}
	if f := summary.Failed[0].Failure; f.Code != "interrupted" || f.Error() != "interrupted" {
		t.Errorf("the wait failed with %+v, want code interrupted", f)
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) { // they may be about to end
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("waited in vain for %d goroutines to end:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// An interrupt while something is prepared for a replacement leaves the old object as it is.
func TestAnInterruptBeforeAReplacement(t *testing.T) {
	const named = "vm \"a\" {\n  name = \"one\"\n}\n"
	b := newBench(t, named)
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec(strings.Replace(named, "one", "two", 1))
	b.options.Allow.Replace = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: true}
	b.memory.uploads = true
	release := make(chan struct{})
	b.memory.hold["upload vm.a"] = release
	ctx, cancel := context.WithCancel(t.Context())
	b.run.Watch = func(e executor.Event) {
		switch {
		case e.Kind == executor.StepProgress && e.Step.Op == "upload":
			cancel()
		case e.Kind == executor.Halted:
			close(release)
		}
	}
	summary, err := b.apply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"upload vm.a"}, results(summary.Done)); diff != "" || !summary.Interrupted || len(summary.Down) > 0 {
		t.Errorf("interrupted: %t, down: %v, done (-want +got):\n%s", summary.Interrupted, summary.Down, diff)
	}
}

// What was released inside of an object is resumed although another change fails meanwhile: the object is also waited for.
func TestAFailureLeavesNothingReleased(t *testing.T) {
	const inner = "box \"b\" {\n  in    = vm.a\n  label = \"b\"\n}\n"
	b := boxed(t)
	if summary, err := b.apply(t.Context()); err != nil || !summary.OK() {
		t.Fatal(summary, err)
	}
	b.spec("vm \"a\" {\n  cpus = 1\n}\n" + inner + "vm \"z\" {}\n")
	b.memory.fail["define vm.z"] = &providers.Problem{Outcome: providers.Failed, Err: errors.New("planted")}
	hold, release := make(chan struct{}), make(chan struct{})
	b.memory.hold["define vm.z"], b.memory.hold["redefine vm.a"] = hold, release
	b.run.Watch = func(e executor.Event) {
		switch {
		case e.Kind == executor.StepProgress && e.Step.Op == "redefine": // a is down: now z may fail
			close(hold)
		case e.Kind == executor.Halted:
			close(release)
		}
	}
	summary, err := b.apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"define vm.z"}, results(summary.Failed)); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
	if done := results(summary.Done); !slices.Contains(done, "open box.b") || len(summary.Down) > 0 {
		t.Errorf("done: %v, down: %v", done, summary.Down)
	}
}
