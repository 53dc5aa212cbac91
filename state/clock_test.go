package state_test

import (
	"testing"
	"time"

	"vmctl/spec"
	"vmctl/state"
)

// A clock that was set back orders nothing anew and refuses nothing: entries have
// their place by their number, and a lock has no age.
func TestClockSetBack(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	first, second := record("dev", 1), record("dev", 2)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &first})
	closeIt(t, j)
	j = open(t, f)
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Begin, Op: "stop", Address: dev})
	crashed := abandon(t, f)
	closeIt(t, j)

	before := f.Now().AddDate(-10, 0, 0)
	crashed.Now = func() time.Time { return before }
	j = open(t, crashed)
	appendTo(t, j, state.Entry{Run: "r3", Kind: state.Done, Op: "stop", Address: dev, Put: &second})
	holder, err := crashed.Holder(t.Context())
	if err != nil || holder == nil || !holder.Since.Equal(before) {
		t.Errorf("the lock is held by %v, %v", holder, err)
	}
	s := read(t, abandon(t, crashed))
	if d := diff(map[spec.Address]state.Record{dev: second}, s.Records); d != "" || interrupted(s) != "r2/0 stop vm.dev" {
		t.Errorf("interrupted %s, records (-want +got):\n%s", interrupted(s), d)
	}
	closeIt(t, j)
	if s := read(t, crashed); s.Serial != 3 || len(s.Notes) != 0 {
		t.Errorf("serial %d, notes %v", s.Serial, s.Notes)
	}
}

// What others record while a long step runs is there when that has ended, and the
// other way round.
//
// row L47, of the steps of one run
func TestLongStepLosesNobodysRecord(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	long, short := record("dev", 1), record("web", 2)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Begin, Step: 0, Op: "define", Address: dev})
	for step := range 20 {
		short.Starts = step
		appendTo(t, j,
			state.Entry{Run: "r", Kind: state.Begin, Step: 1 + step, Op: "start", Address: webA},
			state.Entry{Run: "r", Kind: state.Done, Step: 1 + step, Op: "start", Address: webA, Put: &short})
	}
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Step: 0, Op: "define", Address: dev, Put: &long})
	want := map[spec.Address]state.Record{dev: long, webA: short}
	if d := diff(want, read(t, abandon(t, f)).Records); d != "" {
		t.Errorf("records after a crash (-want +got):\n%s", d)
	}
	closeIt(t, j)
	if d := diff(want, read(t, f).Records); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

// What a run that was killed left in its journal is remembered before and after it
// has become a snapshot; what comes later is something else.
func TestSumIsOfWhatIsRemembered(t *testing.T) {
	sum := func(s *state.Snapshot) string {
		t.Helper()
		text, err := s.Sum()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	f := folder(t)
	j, made := open(t, f), record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Begin, Step: 0, Op: "define", Address: dev, Put: &made})
	left := abandon(t, f)
	before := read(t, left)
	k := open(t, left)
	after := k.Snapshot()
	if before.Serial == after.Serial || sum(before) != sum(after) {
		t.Errorf("serial %d has the sum %s, serial %d has %s", before.Serial, sum(before), after.Serial, sum(after))
	}
	appendTo(t, k, state.Entry{Run: "r", Kind: state.Done, Step: 0, Op: "define", Address: dev})
	if later := k.Snapshot(); sum(later) == sum(after) {
		t.Errorf("a step has ended, and the sum is %s still", sum(later))
	}
	closeIt(t, k)
	closeIt(t, j)
}
