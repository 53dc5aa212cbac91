package process_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/process"
)

// The same table runs on this machine's processes, in all ways in which it can
// be asked, and on a made-up system that has no groups.
//
// row L33
func TestConformance(t *testing.T) {
	worlds := map[string]world{"fake": newFakeWorld()}
	for name, host := range realHosts() {
		worlds[name] = realWorld{host: host}
	}
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			for _, c := range conformance {
				t.Run(c.name, func(t *testing.T) { c.run(t, w) })
			}
		})
	}
}

var conformance = []struct {
	name string
	run  func(*testing.T, world)
}{
	{"runs", testRuns},
	{"ended", testEnded},
	{"reboot", testReboot},
	{"elsewhere", testElsewhere},
	{"recycled", testRecycled},
	{"invalid pid", testInvalidPID},
	{"upgraded", testUpgraded},
	{"other program", testOtherProgram},
	{"retitled", testRetitled},
	{"request", testRequest},
	{"deaf", testDeaf},
	{"late", testLate},
	{"force tree", testForceTree},
	{"force one of a family", testForceOne},
	{"find", testFind},
	{"capture the gone", testCaptureGone},
}

// refused says that neither way to end the process does anything.
func refused(t *testing.T, host process.Host, id process.Identity, want process.Verdict) {
	t.Helper()
	_, forced := host.Force(id)
	for name, err := range map[string]error{"request": host.Request(id), "force": forced} {
		var refusal *process.RefusedError
		if !errors.As(err, &refusal) || refusal.Verdict != want {
			t.Errorf("%s: error %v, want a refusal: %s", name, err, want)
		}
	}
}

// row X01
func testRuns(t *testing.T, w world) {
	a := w.Run(t, "polite")
	verify(t, w.Host(), a.Identity, process.Match)
	err := w.Host().Wait(over(t), a.Identity)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("wait for a process that runs: %v", err)
	}
}

// A process that its parent has not collected is gone like any other.
//
// row X01
func testEnded(t *testing.T, w world) {
	a := w.Run(t, "polite")
	a.End()
	must(t, w.Host().Wait(t.Context(), a.Identity))
	verify(t, w.Host(), a.Identity, process.Gone)
	refused(t, w.Host(), a.Identity, process.Gone)
	a.Collect()
	verify(t, w.Host(), a.Identity, process.Gone)
	refused(t, w.Host(), a.Identity, process.Gone)
	must(t, w.Host().Wait(over(t), a.Identity))
}

// row X01
func testReboot(t *testing.T, w world) {
	a := w.Run(t, "polite")
	id := a.Identity
	id.BootID = "another"
	verify(t, w.Host(), id, process.Gone)
	refused(t, w.Host(), id, process.Gone)
	must(t, w.Host().Wait(over(t), id))
	verify(t, w.Host(), a.Identity, process.Match)
}

// What was recorded elsewhere can neither be found here nor be gone from here.
func testElsewhere(t *testing.T, w world) {
	a := w.Run(t, "polite")
	for name, change := range map[string]func(*process.Identity){
		"host":       func(id *process.Identity) { id.Host = "another" },
		"machine":    func(id *process.Identity) { id.Machine = "another" },
		"namespace":  func(id *process.Identity) { id.Namespace = "another" },
		"no start":   func(id *process.Identity) { id.StartTime = 0 },
		"no boot":    func(id *process.Identity) { id.BootID = "" },
		"no program": func(id *process.Identity) { id.Exe = "" },
	} {
		t.Run(name, func(t *testing.T) {
			id := a.Identity
			change(&id)
			verify(t, w.Host(), id, process.Unknown)
			refused(t, w.Host(), id, process.Unknown)
			if err := w.Host().Wait(over(t), id); err == nil {
				t.Error("wait for what cannot be told succeeded")
			}
		})
	}
	verify(t, w.Host(), a.Identity, process.Match)
}

// A number that was given to another process: that one lives on.
//
// row L34
// row J25
// row X01
func testRecycled(t *testing.T, w world) {
	a := w.Run(t, "polite")
	before := a.Identity
	before.StartTime--
	verify(t, w.Host(), before, process.Reused)
	refused(t, w.Host(), before, process.Reused)
	must(t, w.Host().Wait(over(t), before))
	verify(t, w.Host(), a.Identity, process.Match)
}

// row L05
// row X01
func testInvalidPID(t *testing.T, w world) {
	a := w.Run(t, "polite")
	for _, pid := range []int{1, 0, -1, -5} {
		id := a.Identity
		id.PID = pid
		if verdict, reason := w.Host().Verify(id); verdict != process.Unknown || !strings.HasPrefix(reason, "pid invalid: ") {
			t.Errorf("pid %d: %s: %s", pid, verdict, reason)
		}
		refused(t, w.Host(), id, process.Unknown)
		if _, err := w.Host().Capture(t.Context(), pid); err == nil || !strings.Contains(err.Error(), "pid invalid: ") {
			t.Errorf("capture pid %d: %v", pid, err)
		}
		if err := w.Host().Wait(over(t), id); err == nil {
			t.Errorf("pid %d was waited for", pid)
		}
		verify(t, w.Host(), a.Identity, process.Match)
	}
}

// The file of a running program may have been replaced, before or after it was
// recorded.
func testUpgraded(t *testing.T, w world) {
	a := w.Run(t, "polite")
	id := a.Identity
	id.Exe += " (deleted)"
	verify(t, w.Host(), id, process.Match)
}

// The recorded process runs something else: it is not gone, and not known.
func testOtherProgram(t *testing.T, w world) {
	a := w.Run(t, "polite")
	id := a.Identity
	id.Exe = "/bin/other"
	verify(t, w.Host(), id, process.Unknown)
	refused(t, w.Host(), id, process.Unknown)
	verify(t, w.Host(), a.Identity, process.Match)
}

func testRetitled(t *testing.T, w world) {
	a := w.Run(t, "polite")
	id := a.Identity
	id.Argv0 = "before it renamed itself"
	verify(t, w.Host(), id, process.Match)
}

func testRequest(t *testing.T, w world) {
	a := w.Run(t, "polite")
	must(t, w.Host().Request(a.Identity))
	must(t, w.Host().Wait(t.Context(), a.Identity))
	verify(t, w.Host(), a.Identity, process.Gone)
}

// One that ignores requests lives until it is forced.
func testDeaf(t *testing.T, w world) {
	a := w.Run(t, "deaf")
	must(t, w.Host().Request(a.Identity))
	must(t, w.Host().Request(a.Identity))
	verify(t, w.Host(), a.Identity, process.Match)
	ended, err := w.Host().Force(a.Identity)
	must(t, err)
	must(t, w.Host().Wait(t.Context(), ended...))
	verify(t, w.Host(), a.Identity, process.Gone)
}

// One that takes its time is not gone before it is.
func testLate(t *testing.T, w world) {
	a := w.Run(t, "late")
	must(t, w.Host().Request(a.Identity))
	a.Heard()
	verify(t, w.Host(), a.Identity, process.Match)
	if err := w.Host().Wait(over(t), a.Identity); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for one that has heard only: %v", err)
	}
	a.LetGo()
	must(t, w.Host().Wait(t.Context(), a.Identity))
	verify(t, w.Host(), a.Identity, process.Gone)
}

// row L04
func testForceTree(t *testing.T, w world) {
	a := w.Run(t, "tree")
	if len(a.Below) != 2 {
		t.Fatalf("%d below, want a child and a child of that", len(a.Below))
	}
	ended, err := w.Host().Force(a.Identity)
	must(t, err)
	if len(ended) != 3 || ended[0] != a.Identity {
		t.Errorf("forced %v, want the process first, and two below", ended)
	}
	for _, id := range a.Below {
		if !slices.Contains(ended, id) {
			t.Errorf("pid %d is not among the forced", id.PID)
		}
	}
	must(t, w.Host().Wait(t.Context(), append(ended, a.Below...)...))
	for _, id := range append(a.Below, a.Identity) {
		verify(t, w.Host(), id, process.Gone)
	}
}

// One that leads no group ends alone: its parent and its sibling are not its own.
//
// row L04
func testForceOne(t *testing.T, w world) {
	a := w.Run(t, "family")
	one, sibling := a.Below[0], a.Below[1]
	ended, err := w.Host().Force(one)
	must(t, err)
	if !slices.Equal(ended, []process.Identity{one}) {
		t.Errorf("forced %v, want only %v", ended, one)
	}
	must(t, w.Host().Wait(t.Context(), one))
	verify(t, w.Host(), one, process.Gone)
	verify(t, w.Host(), sibling, process.Match)
	verify(t, w.Host(), a.Identity, process.Match)
}

// Arguments are found whole, never as a part of another.
//
// row L35
func testFind(t *testing.T, w world) {
	a := w.Run(t, "tree")
	find := func(match func([]string) bool) []process.Identity {
		found, err := w.Host().Find(t.Context(), match)
		must(t, err)
		return found
	}
	found := find(process.HasArgument(mark))
	for _, id := range append(a.Below, a.Identity) {
		if !slices.Contains(found, id) {
			t.Errorf("pid %d was not found among %v", id.PID, found)
		}
	}
	if !slices.IsSortedFunc(found, func(a, b process.Identity) int { return a.PID - b.PID }) {
		t.Errorf("found in no order: %v", found)
	}
	for _, part := range []string{mark[1:], mark[:len(mark)-1], strings.ToUpper(mark), a.Argv0, ""} {
		for _, id := range find(process.HasArgument(part)) {
			if id == a.Identity || slices.Contains(a.Below, id) {
				t.Errorf("%q was found in pid %d", part, id.PID)
			}
		}
	}
	a.End()
	for _, id := range append(a.Below, a.Identity) {
		if _, err := w.Host().Force(id); err != nil && !errors.As(err, new(*process.RefusedError)) {
			t.Error(err)
		}
		must(t, w.Host().Wait(t.Context(), id))
	}
	for _, id := range find(process.HasArgument(mark)) {
		if id == a.Identity || slices.Contains(a.Below, id) {
			t.Errorf("pid %d has ended and was found", id.PID)
		}
	}
}

func testCaptureGone(t *testing.T, w world) {
	a := w.Run(t, "polite")
	a.End()
	must(t, w.Host().Wait(t.Context(), a.Identity))
	for _, state := range []string{"not collected", "collected"} {
		if _, err := w.Host().Capture(t.Context(), a.PID); !errors.Is(err, process.ErrGone) {
			t.Errorf("%s: %v", state, err)
		}
		a.Collect()
	}
}
