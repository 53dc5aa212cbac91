package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/process"
)

// What is seen of a process, and what that means.
//
// row X01
// row J28
func TestVerdicts(t *testing.T) {
	w := newFakeWorld()
	id := w.Run(t, "polite").Identity
	seen := process.Facts{Start: id.StartTime, Exe: id.Exe, Argv: []string{id.Argv0}}
	type edit func(*process.Facts)
	for _, c := range []struct {
		name string
		see  any // error or edit
		want string
	}{
		{
			"itself", edit(func(*process.Facts) {}),
			`match: pid 101 is C:\actors\polite.exe, start time 1001`,
		},
		{"nothing", process.ErrNone, "gone: no process has pid 101"},
		{"no permission", fs.ErrPermission, "unknown: pid 101 cannot be read: permission denied"},
		{"nothing readable", errors.New("input/output error"), "unknown: pid 101 cannot be read: input/output error"},
		{
			"no permission for the program", edit(func(s *process.Facts) { s.Exe, s.ExeErr = "", fs.ErrPermission }),
			"unknown: the program of pid 101 cannot be read: permission denied",
		},
		{
			"no permission for another's program", edit(func(s *process.Facts) { s.Start, s.Exe, s.ExeErr = 1002, "", fs.ErrPermission }),
			`reused: pid 101 belongs to another process now (C:\actors\polite.exe, start time 1002, recorded was 1001)`,
		},
		{
			"nothing about another", edit(func(s *process.Facts) { *s = process.Facts{Start: 1002} }),
			"reused: pid 101 belongs to another process now (a program that cannot be read, start time 1002, recorded was 1001)",
		},
		{
			"not collected", edit(func(s *process.Facts) { s.Ended = true }),
			"gone: pid 101 has ended, and its parent has not collected it",
		},
		{
			"another, not collected", edit(func(s *process.Facts) { s.Ended, s.Start = true, 1002 }),
			`reused: pid 101 belongs to another process now (C:\actors\polite.exe, start time 1002, recorded was 1001)`,
		},
		{
			"on its way out", edit(func(s *process.Facts) { s.Ending, s.Exe, s.Argv = true, "", nil }),
			`match: pid 101 (C:\actors\polite.exe) is ending`,
		},
		{
			"upgraded", edit(func(s *process.Facts) { s.Exe += " (deleted)" }),
			`match: pid 101 is C:\actors\polite.exe, start time 1001`,
		},
		{
			"another program", edit(func(s *process.Facts) { s.Exe = "/bin/sh" }),
			`unknown: pid 101 runs /bin/sh now, recorded was C:\actors\polite.exe`,
		},
		{
			"a new title", edit(func(s *process.Facts) { s.Argv = []string{"polite: idle"} }),
			`match: pid 101 is C:\actors\polite.exe, start time 1001`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			see := c.see
			if change, ok := see.(edit); ok {
				s := seen
				change(&s)
				see = s
			}
			w.system.unreadable = map[int]any{id.PID: see}
			verdict, reason := w.Host().Verify(id)
			if got := string(verdict) + ": " + reason; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A process that is ending is one of those that are not gone, though a search does not see it.
func TestEnding(t *testing.T) {
	w := newFakeWorld()
	ending, gone, other := w.Run(t, "polite").Identity, w.Run(t, "polite").Identity, w.Run(t, "polite").Identity
	w.system.unreadable = map[int]any{
		ending.PID: process.Facts{Start: ending.StartTime, Ending: true}, gone.PID: process.ErrNone, other.PID: process.Facts{Start: other.StartTime + 1},
	}
	if diff := cmp.Diff([]process.Identity{ending}, w.Host().Ending([]process.Identity{gone, ending, other})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What the record says, and what that means.
//
// row X01
func TestRecords(t *testing.T) {
	w := newFakeWorld()
	recorded := w.Run(t, "polite").Identity
	for _, c := range []struct {
		name   string
		change func(*process.Identity)
		want   string
	}{
		{"pid 1", func(id *process.Identity) { id.PID = 1 }, "unknown: pid invalid: 1 is not a process of ours"},
		{"a group", func(id *process.Identity) { id.PID = -5 }, "unknown: pid invalid: -5 is not a process of ours"},
		{"nothing", func(id *process.Identity) { *id = process.Identity{} }, "unknown: pid invalid: 0 is not a process of ours"},
		{"no start", func(id *process.Identity) { id.StartTime = 0 }, "unknown: the record is incomplete: it has no start time"},
		{"no boot", func(id *process.Identity) { id.BootID = "" }, "unknown: the record is incomplete: it has no boot ID"},
		{
			"no program", func(id *process.Identity) { id.Exe = "" },
			`unknown: pid 101 is C:\actors\polite.exe, but was recorded without its program`,
		},
		{
			"another host", func(id *process.Identity) { id.Host = "bob" },
			`unknown: recorded on host "bob", this is "ada": look there`,
		},
		{
			"another host of the same name", func(id *process.Identity) { id.Machine, id.BootID = "m2", "b2" },
			`unknown: recorded on another machine with the name "ada": look there`,
		},
		{
			"another boot", func(id *process.Identity) { id.BootID = "b0" },
			"gone: recorded before this machine was started last",
		},
		{
			"another boot, in a container", func(id *process.Identity) { id.BootID, id.Namespace = "b0", "n2" },
			"gone: recorded before this machine was started last",
		},
		{
			"a container", func(id *process.Identity) { id.Namespace = "n2" },
			"unknown: recorded in another process namespace (n2, this is n1), as of a container: look there",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := recorded
			c.change(&id)
			verdict, reason := w.Host().Verify(id)
			if got := string(verdict) + ": " + reason; got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Where nothing is known of processes none is ever gone, and none is started.
//
// row J31
func TestUnsupportedSystem(t *testing.T) {
	id := newFakeWorld().Run(t, "polite").Identity
	host := process.NewHost(process.Unsupported("plan9"))
	reason := "processes of plan9 cannot be recognised: use Linux, macOS or Windows"
	verdict, said := host.Verify(id)
	_, captured := host.Capture(t.Context(), id.PID)
	_, found := host.Find(t.Context(), process.HasArgument(mark))
	_, started := host.Start(process.Command{Path: self(t)})
	_, forced := host.Force(id)
	got := []string{
		string(verdict) + ": " + said, captured.Error(), found.Error(), started.Error(),
		host.Request(id).Error(), forced.Error(), host.Wait(t.Context(), id).Error(),
	}
	want := []string{
		"unknown: " + reason,
		"identify pid 101: " + reason,
		"find processes: " + reason,
		"start " + self(t) + ": " + reason,
		`request pid 101 (C:\actors\polite) to end: refused: unknown: ` + reason,
		`force pid 101 (C:\actors\polite) to end: refused: unknown: ` + reason,
		`wait for pid 101 (C:\actors\polite) to end: refused: unknown: ` + reason,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
	if errors.Is(captured, process.ErrGone) {
		t.Error("captured as gone")
	}
}

// A record is kept in files: what is read back is what was written, and the
// names are a format.
func TestRecordIsKeptAsJSON(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "polite")
	// No file name has to be text.
	w.system.processes[a.PID].facts.Exe = "/bin/\xff\xfe"
	w.system.processes[a.PID].facts.Argv[0] = "\xff"
	id, err := w.Host().Capture(t.Context(), a.PID)
	must(t, err)
	kept, err := json.Marshal(id)
	must(t, err)
	want := `{"host":"ada","machine":"m1","boot_id":"b1","namespace":"n1","pid":101,"start_time":1001,` +
		`"exe":"/bin/` + "\uFFFD" + `","argv0":"` + "\uFFFD" + `","pgid":0}`
	if string(kept) != want {
		t.Errorf("got  %s\nwant %s", kept, want)
	}
	var back process.Identity
	must(t, json.Unmarshal(kept, &back))
	verify(t, w.Host(), back, process.Match)
}

// A number that is given to another process while its owner is waited for, or is
// about to be asked: the new owner is neither waited for nor asked.
//
// row L34
func TestRecycledMeanwhile(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "deaf")
	w.system.beforeRequest = func() { w.system.recycle(a.PID) }
	must(t, w.Host().Request(a.Identity))
	verify(t, w.Host(), a.Identity, process.Reused)
	must(t, w.Host().Wait(t.Context(), a.Identity))

	b := w.Run(t, "deaf")
	waited := make(chan error)
	go func() { waited <- w.Host().Wait(t.Context(), b.Identity) }()
	w.system.recycle(b.PID)
	must(t, <-waited)
	refused(t, w.Host(), b.Identity, process.Reused)
}

// What cannot be read for a while is waited for, and its end is seen all the same.
func TestWaitForTheUnreadable(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "deaf")
	w.system.unreadable = map[int]any{a.PID: fs.ErrPermission}
	err := w.Host().Wait(over(t), a.Identity)
	want := `wait for pid 101 (C:\actors\deaf) to end: pid 101 cannot be read: permission denied: context canceled`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	a.End()
	must(t, w.Host().Wait(t.Context(), a.Identity))
}

// What cannot be held is not signalled. It is waited for by looking at it.
func TestNoHandle(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "deaf")
	w.system.unheld = errors.New("too many open files")
	want := `request pid 101 (C:\actors\deaf) to end: refused: unknown: too many open files`
	if err := w.Host().Request(a.Identity); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	refused(t, w.Host(), a.Identity, process.Unknown)
	if err := w.Host().Wait(over(t), a.Identity); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for one that runs: %v", err)
	}
	a.End()
	must(t, w.Host().Wait(t.Context(), a.Identity))
}

// A refusal says what was attempted and what was seen.
//
// row L32
func TestRefusalSaysWhy(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "deaf")
	id := a.Identity
	id.StartTime = 7
	_, forced := w.Host().Force(id)
	got := []string{w.Host().Request(id).Error(), forced.Error()}
	reason := `refused: reused: pid 101 belongs to another process now (C:\actors\deaf.exe, start time 1001, recorded was 7)`
	want := []string{
		`request pid 101 (C:\actors\deaf) to end: ` + reason,
		`force pid 101 (C:\actors\deaf) to end: ` + reason,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}

// Find tells when it has not seen everything, and returns what it has seen.
//
// row J28
func TestFindTellsWhatItCouldNotRead(t *testing.T) {
	w := newFakeWorld()
	a, b := w.Run(t, "deaf"), w.Run(t, "deaf")
	hidden := w.Run(t, "deaf")
	vanishing := w.Run(t, "deaf")
	silent := w.Run(t, "deaf")
	w.system.unreadable = map[int]any{
		hidden.PID:    fs.ErrPermission,
		vanishing.PID: process.ErrNone,
		silent.PID:    process.Facts{Start: silent.StartTime, Exe: silent.Exe, ArgvErr: fs.ErrPermission},
	}
	found, err := w.Host().Find(t.Context(), process.HasArgument(mark))
	want := "find processes: 2 could not be read, of which pid 103: permission denied"
	if !errors.Is(err, fs.ErrPermission) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !slices.Equal(found, []process.Identity{a.Identity, b.Identity}) {
		t.Errorf("found %v, want %v and %v", found, a.Identity, b.Identity)
	}

	// Worse than no permission is told instead.
	w.system.unreadable[silent.PID] = errors.New("input/output error")
	_, err = w.Host().Find(t.Context(), process.HasArgument(mark))
	want = "find processes: 2 could not be read, of which pid 105: input/output error"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFindFailsWithoutATable(t *testing.T) {
	w := newFakeWorld()
	w.system.broken = errors.New("no table")
	if found, err := w.Host().Find(t.Context(), process.HasArgument(mark)); err == nil || err.Error() != "find processes: no table" {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestDenied(t *testing.T) {
	w := newFakeWorld()
	a := w.Run(t, "deaf")
	w.system.denied = fs.ErrPermission
	_, forced := w.Host().Force(a.Identity)
	got := []string{w.Host().Request(a.Identity).Error(), forced.Error()}
	reason := "permission denied: it belongs to another user, run the command as that user"
	want := []string{
		`request pid 101 (C:\actors\deaf) to end: ` + reason,
		`force pid 101 (C:\actors\deaf) to end: ` + reason,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}
