package view_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// events is a small apply: vm.dev comes up, vm.db fails to.
func events() []executor.Event {
	dev, db := creation("dev"), change("db", providers.Start, "it is off")
	start := step(2, 0, dev, "start", providers.PhaseUp, 10*time.Minute, 1)
	ssh := step(3, 0, dev, "wait_ssh", providers.PhaseReady, 5*time.Minute, 2)
	other := step(4, 1, db, "start", providers.PhaseUp, 90*time.Second)
	stop := step(5, 1, db, "stop", providers.PhaseDown, 40*time.Second)
	tidy := step(6, 1, db, "tidy", providers.PhaseTidy, 0)
	tidy.Class = providers.Diagnostic
	at := noon()
	return []executor.Event{
		{Kind: executor.StepStarted, At: at, Step: start, Deadline: start.Timeout},
		{Kind: executor.StepDone, At: at, Step: start, How: providers.Done, Elapsed: 4200 * time.Millisecond},
		{Kind: executor.StepStarted, At: at, Step: ssh, Deadline: ssh.Timeout},
		{Kind: executor.StepProgress, At: at, Step: ssh, Text: "127.0.0.1:40022 accepts, and nobody answers yet\x07"},
		{Kind: executor.StepStarted, At: at, Step: other, Deadline: other.Timeout},
		{Kind: executor.StepDone, At: at, Step: ssh, How: providers.AlreadyTrue, Elapsed: 61 * time.Second},
		{Kind: executor.StepFailed, At: at, Step: other, Failure: brokenStart(), Elapsed: 1500 * time.Millisecond},
		{Kind: executor.Halted, At: at, Text: "vm.db failed: no further change begins"},
		{
			Kind: executor.StepDone, At: at, Step: stop, How: providers.Forced, Elapsed: 40 * time.Second,
			Evidence: []string{"requested at 12:00:00, forced at 12:00:30"},
		},
		{Kind: executor.StepWarned, At: at, Step: tidy, Failure: &providers.Problem{Outcome: providers.Failed, Err: errors.New("the log file stays")}},
	}
}

func brokenStart() *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "guest_paused",
		Seen: []string{"libvirt: paused, reason I/O error", "QEMU: KVM internal error. Suberror: 1"},
		Next: slices.Concat(providers.Say(`set accel = "tcg" in vm.db`), providers.Vmctl("apply")),
		Err:  errors.New("start quickstart.db: the hypervisor paused it at once"),
	}
}

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := view.Progress{Screen: view.Screen{W: &out, Columns: 80}}
	for _, e := range events() {
		p.Watch(e)
	}
	golden(t, "progress-80", out.String())
}

func TestProgressSaysThatASilentStepStillRuns(t *testing.T) {
	var out bytes.Buffer
	p := view.Progress{Screen: view.Screen{W: &out}, Silence: 10 * time.Second}
	start := step(2, 0, creation("dev"), "start", providers.PhaseUp, 10*time.Minute, 1)
	p.Watch(executor.Event{Kind: executor.StepStarted, At: noon(), Step: start, Deadline: start.Timeout})
	out.Reset()
	p.Tick(noon().Add(9 * time.Second))
	if out.Len() > 0 {
		t.Errorf("speaks before its time: %q", out.String())
	}
	p.Tick(noon().Add(10 * time.Second))
	p.Tick(noon().Add(15 * time.Second))
	want := "vm.dev: still starting, for 10s of at most 10m\n"
	if out.String() != want {
		t.Errorf("says %q, want %q", out.String(), want)
	}
	p.Watch(executor.Event{Kind: executor.StepDone, At: noon(), Step: start})
	out.Reset()
	p.Tick(noon().Add(time.Hour))
	if out.Len() > 0 {
		t.Errorf("speaks of a step that has ended: %q", out.String())
	}
}

func TestAHaltListsWhatRunsOn(t *testing.T) {
	var out bytes.Buffer
	p := view.Progress{}
	for i := range 12 {
		s := named(i, fmt.Sprintf("%02d", 11-i), "start", time.Minute)
		p.Watch(executor.Event{Kind: executor.StepStarted, At: noon(), Step: s, Deadline: s.Timeout})
	}
	p.Halt(view.Screen{W: &out}, executor.Event{
		Kind: executor.Halted, At: noon().Add(3 * time.Second), Text: "interrupted: no further change begins", Interrupted: true,
	})
	want := "Stopping: interrupted: no further change begins\n"
	for i := range 10 {
		want += fmt.Sprintf("  waiting for vm.web[\"%02d\"]: starting, for 3s of at most 1m\n", i)
	}
	want += "  and for 2 steps more\n  A second Ctrl-C leaves at once; the next plan then says what was interrupted.\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("a halt says (-want +got):\n%s", diff)
	}
}

func TestEventsAsJSON(t *testing.T) {
	var out bytes.Buffer
	for _, e := range events() {
		if err := view.Line(&out, view.EventJSON(e, view.OwnFlags{})); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "events-json", out.String())
	if lines := strings.Count(out.String(), "\n"); lines != len(events()) {
		t.Errorf("%d lines for %d events", lines, len(events()))
	}
}

// failedStart is an apply whose third step failed.
func failedStart() executor.Summary {
	dev, db := creation("dev"), change("db", providers.RestartIt, "memory cannot change while it runs")
	return executor.Summary{
		Done: []executor.StepResult{
			{Step: step(0, 0, dev, "define", providers.PhaseMake, time.Minute), How: providers.Done},
			{Step: step(1, 1, db, "stop", providers.PhaseDown, 40*time.Second), How: providers.Forced},
		},
		Failed: []executor.StepResult{{
			Step: step(2, 1, db, "start", providers.PhaseUp, 10*time.Minute), Failure: brokenStart(), Elapsed: 2 * time.Second,
		}},
		NotRun: []planner.Step{
			step(3, 0, dev, "start", providers.PhaseUp, 10*time.Minute),
			step(4, 1, db, "wait_ssh", providers.PhaseReady, 5*time.Minute),
		},
		Down: []spec.Address{vm("db")},
	}
}

func TestSummary(t *testing.T) {
	interrupted := failedStart()
	interrupted.Failed, interrupted.Interrupted = nil, true
	warned := executor.Summary{Done: failedStart().Done, Warned: failedStart().Failed}
	for name, test := range map[string]struct {
		summary executor.Summary
		next    []string
	}{
		"summary-failed-80":      {failedStart(), []string{`set accel = "tcg" in vm.db`, "vmctl apply goes on from here"}},
		"summary-interrupted-80": {interrupted, []string{"vmctl plan shows what is left, vmctl apply does it"}},
		"summary-warned-80":      {warned, nil},
		"summary-done-80":        {executor.Summary{Done: failedStart().Done}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := view.SummaryOptions{Command: "Apply", Next: test.next}
			golden(t, name, on(80, func(s view.Screen) { view.Summary(s, test.summary, o) }))
		})
	}
	t.Run("summary-skipped-80", func(t *testing.T) {
		o := view.SummaryOptions{Command: "Destroy", Skipped: 3}
		golden(t, "summary-skipped-80", on(80, func(s view.Screen) {
			view.Summary(s, executor.Summary{Done: failedStart().Done}, o)
			o.Skipped = 1
			view.Summary(s, failedStart(), o)
		}))
	})
	t.Run("summary-failed-40", func(t *testing.T) {
		o := view.SummaryOptions{Command: "Apply", Next: []string{"vmctl apply goes on from here"}}
		golden(t, "summary-failed-40", on(40, func(s view.Screen) { view.Summary(s, failedStart(), o) }))
	})
}

func TestSummaryAsJSON(t *testing.T) {
	var out bytes.Buffer
	if err := view.JSON(&out, view.SummaryJSON(failedStart(), view.SummaryMore{Next: []string{"vmctl apply"}})); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary-failed-json", out.String())
}
