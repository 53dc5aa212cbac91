package state_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"vmctl/spec"
	"vmctl/state"
)

// A reader beside a writer sees the state as it was at one moment: never less
// than what was acknowledged before it began, never a file that is on its way.
func TestReadBesideAWriter(t *testing.T) {
	f := folder(t)
	var acknowledged atomic.Int64
	var done atomic.Bool
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				atLeast := acknowledged.Load()
				s, err := f.Read(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if got := int64(s.Records[dev].Starts); got < atLeast || len(s.Notes) > 0 {
					t.Errorf("read start %d with notes %v, want at least start %d and no notes", got, s.Notes, atLeast)
					return
				}
			}
		})
	}
	for range 25 {
		j := open(t, f)
		for range 3 {
			r := record("dev", 1)
			r.Starts = int(acknowledged.Load()) + 1
			appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Address: dev, Put: &r})
			acknowledged.Add(1)
		}
		closeIt(t, j)
	}
	done.Store(true)
	readers.Wait()
}

func TestAppendFromManyGoroutines(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	var steps sync.WaitGroup
	for step := range 16 {
		steps.Go(func() {
			a := spec.Address{Kind: spec.VM, Name: "web", Key: string(rune('a' + step))}
			r := record(a.Key, int64(step))
			if err := j.Append(t.Context(), state.Entry{Run: "r", Kind: state.Begin, Step: step, Address: a}); err != nil {
				t.Error(err)
			}
			if j.Snapshot().Records == nil {
				t.Error("no records")
			}
			if err := j.Append(t.Context(), state.Entry{Run: "r", Kind: state.Done, Step: step, Address: a, Put: &r}); err != nil {
				t.Error(err)
			}
		})
	}
	steps.Wait()
	beside := read(t, f)
	closeIt(t, j)
	closed := read(t, f)
	if len(closed.Records) != 16 || len(closed.Interrupted) != 0 {
		t.Errorf("%d records, interrupted %v; want 16 and none", len(closed.Records), closed.Interrupted)
	}
	beside.Serial++
	if d := diff(beside, closed); d != "" {
		t.Errorf("journal and snapshot differ (-journal +snapshot):\n%s", d)
	}
}

// While somebody writes, the last line is on its way: that is nothing to note.
func TestLineUnderWayIsNotTorn(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Begin, Op: "start", Address: dev})
	place(t, f, "journal-0.ndjson", file(t, f, "journal-0.ndjson")+`{"e":{`)
	if s := read(t, f); interrupted(s) != "r/0 start vm.dev" || len(s.Notes) > 0 {
		t.Errorf("beside the writer: interrupted %s, notes %v", interrupted(s), s.Notes)
	}
	crashed := abandon(t, f)
	if s := read(t, crashed); interrupted(s) != "r/0 start vm.dev" || len(s.Notes) != 1 {
		t.Errorf("after a crash: interrupted %s, notes %v", interrupted(s), s.Notes)
	}
	closeIt(t, j)
}
