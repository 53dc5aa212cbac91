package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
	"vmctl/state"
)

// abandon leaves a journal as a killed process does: the lock is free, and
// nothing was tidied. The journal must not be used any more.
func abandon(t *testing.T, f dataDir) dataDir {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(f.Dir)); err != nil {
		t.Fatal(err)
	}
	return folderAt(dir)
}

// interrupted is the interrupted steps as text.
func interrupted(s *state.Snapshot) string {
	var steps []string
	for _, e := range s.Interrupted {
		steps = append(steps, fmt.Sprintf("%s/%d %s %s", e.Run, e.Step, e.Op, e.Address))
	}
	return strings.Join(steps, ", ")
}

func TestInterruptedSteps(t *testing.T) {
	begin := func(run string, step int, a spec.Address) state.Entry {
		return state.Entry{Run: run, Kind: state.Begin, Step: step, Op: "start", Address: a}
	}
	end := func(kind state.EntryKind, run string, step int, a spec.Address) state.Entry {
		return state.Entry{Run: run, Kind: kind, Step: step, Op: "start", Address: a}
	}
	settled := state.Entry{Run: "r3", Kind: state.Note, Op: state.Settled, Address: dev}
	for _, test := range []struct {
		name    string
		entries []state.Entry
		want    string
	}{
		{"begun", []state.Entry{begin("r1", 0, dev)}, "r1/0 start vm.dev"},
		{"done", []state.Entry{begin("r1", 0, dev), end(state.Done, "r1", 0, dev)}, ""},
		{"failed", []state.Entry{begin("r1", 0, dev), end(state.Failed, "r1", 0, dev)}, ""},
		{"another step done", []state.Entry{begin("r1", 0, dev), begin("r1", 1, webA), end(state.Done, "r1", 1, webA)}, "r1/0 start vm.dev"},
		{"the step of another run done", []state.Entry{begin("r1", 0, dev), begin("r2", 0, dev), end(state.Done, "r2", 0, dev)}, "r1/0 start vm.dev"},
		{"begun twice", []state.Entry{begin("r1", 1, webA), begin("r1", 0, dev), begin("r1", 1, webA)}, `r1/0 start vm.dev, r1/1 start vm.web["a"]`},
		{"settled", []state.Entry{begin("r1", 0, dev), begin("r2", 3, dev), begin("r1", 1, webA), settled}, `r1/1 start vm.web["a"]`},
		{"another note", []state.Entry{begin("r1", 0, dev), {Run: "r3", Kind: state.Note, Op: "adopted", Address: dev}}, "r1/0 start vm.dev"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			j := open(t, f)
			appendTo(t, j, test.entries...)
			crashed := abandon(t, f)
			closeIt(t, j)
			got := map[string]string{
				"appended": interrupted(j.Snapshot()), "closed": interrupted(read(t, f)), "crashed": interrupted(read(t, crashed)),
			}
			closeIt(t, open(t, crashed))
			got["folded"] = interrupted(read(t, crashed))
			want := map[string]string{"appended": test.want, "closed": test.want, "crashed": test.want, "folded": test.want}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("interrupted (-want +got):\n%s", d)
			}
		})
	}
}

// A destruction has begun until the record is gone, whichever of its steps were done.
func TestDestructionIsBegunUntilTheRecordGoes(t *testing.T) {
	a := spec.Address{Kind: spec.VM, Name: "dev"}
	entry := func(kind state.EntryKind, step int, op string) state.Entry {
		e := state.Entry{Kind: kind, Run: "r1", Step: step, Op: op, Address: a}
		if kind == state.Begin {
			e.How, e.Leaves = state.Destroying, []string{"half of it"}
			if op == "delete" {
				e.How = state.Deleting
			}
		}
		return e
	}
	s := &state.Snapshot{Records: map[spec.Address]state.Record{}}
	for _, next := range []struct {
		entry state.Entry
		want  string // what has begun, and may have left something
	}{
		{entry(state.Begin, 0, "stop"), "stop [half of it]"},
		{entry(state.Done, 0, "stop"), "stop []"},
		{entry(state.Begin, 1, "delete"), "stop [], delete [half of it]"},
		{entry(state.Failed, 1, "delete"), "stop []"},
		{entry(state.Begin, 2, "delete"), "stop [], delete [half of it]"},
		{state.Entry{Kind: state.Failed, How: state.Deleting, Run: "r1", Step: 2, Op: "delete", Address: a}, "stop [], delete [half of it]"},
		{state.Entry{Kind: state.Done, Run: "r1", Step: 2, Op: "delete", Address: a, Drop: true}, ""},
	} {
		s = s.With(next.entry)
		got := []string{}
		for _, e := range s.Interrupted {
			got = append(got, fmt.Sprint(e.Op, " ", e.Leaves))
		}
		if d := cmp.Diff(next.want, strings.Join(got, ", ")); d != "" {
			t.Errorf("after %s of %s (-want +got):\n%s", next.entry.Kind, next.entry.Op, d)
		}
	}
}

func TestInterruptedStepKeepsWhatItMayLeave(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	at := time.Date(2026, 5, 6, 7, 8, 9, 10, time.FixedZone("east", 3600))
	begun := state.Entry{Run: "r1", At: at, Kind: state.Begin, Step: 4, Op: "upload", Address: dev, ID: "i", Name: "n", Leaves: []string{"a volume"}}
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Begin, Step: 3, Op: "stop", Address: webA}, begun)
	closeIt(t, j)
	begun.Seq, begun.At = 2, at.UTC()
	other := state.Entry{Seq: 1, Run: "r1", At: f.Now(), Kind: state.Begin, Step: 3, Op: "stop", Address: webA}
	if d := diff([]state.Entry{other, begun}, read(t, f).Interrupted); d != "" {
		t.Errorf("interrupted (-want +got):\n%s", d)
	}
	if got := file(t, f, "state.json"); !strings.Contains(got, `"at":"2026-05-06T06:08:09.00000001Z"`) {
		t.Errorf("times are not in UTC:\n%s", got)
	}
}

func TestRecordsArePutAndDropped(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	first, second := record("dev", 1), record("dev", 2)
	other := record("web", 3)
	appendTo(t, j,
		state.Entry{Run: "r", Kind: state.Done, Step: 0, Address: dev, Put: &first},
		state.Entry{Run: "r", Kind: state.Done, Step: 1, Address: webA, Put: &other},
		state.Entry{Run: "r", Kind: state.Failed, Step: 2, Address: dev, Put: &second, Error: "the guest did not answer"})
	if d := diff(map[spec.Address]state.Record{dev: second, webA: other}, read(t, f).Records); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if d := diff(map[spec.Address]cty.Value{dev: second.Values, webA: other.Values}, read(t, f).Values()); d != "" {
		t.Errorf("values (-want +got):\n%s", d)
	}
	appendTo(t, j, state.Entry{Run: "r", Kind: state.Done, Step: 3, Address: dev, Drop: true})
	closeIt(t, j)
	if d := diff(map[spec.Address]state.Record{webA: other}, read(t, f).Records); d != "" {
		t.Errorf("records after drop (-want +got):\n%s", d)
	}
}

func TestCrashedJournalBecomesASnapshot(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	appendTo(t, j, state.Entry{Run: "r1", Kind: state.Done, Address: dev, Put: &r})
	closeIt(t, j)
	before := file(t, f, "state.json")

	j = open(t, f)
	changed := record("dev", 2)
	appendTo(t, j, state.Entry{Run: "r2", Kind: state.Done, Address: dev, Put: &changed})
	crashed := abandon(t, f)
	closeIt(t, j)

	j = open(t, crashed)
	s := j.Snapshot()
	if s.Serial != 2 || diff(changed, s.Records[dev]) != "" {
		t.Errorf("opened serial %d (-want +got):\n%s", s.Serial, diff(changed, s.Records[dev]))
	}
	if d := cmp.Diff(before, file(t, crashed, "state.json.backup")); d != "" {
		t.Errorf("backup (-want +got):\n%s", d)
	}
	if _, err := os.Stat(filepath.Join(crashed.Dir, "journal-1.ndjson")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folded journal: %v, want it gone", err)
	}
	closeIt(t, j)
	if got := read(t, crashed).Serial; got != 2 {
		t.Errorf("serial %d after a close without entries, want 2", got)
	}
}

func TestOpenWithoutAppendWritesNothing(t *testing.T) {
	f := folder(t)
	f.Dir = filepath.Join(f.Dir, "a", "b")
	if s := read(t, f); s.Serial != 0 || s.ID != id || s.Project != "example" || len(s.Records) != 0 {
		t.Errorf("read %+v, want an empty snapshot", s)
	}
	j := open(t, f)
	if err := j.Append(t.Context()); err != nil {
		t.Errorf("append of nothing: %v", err)
	}
	closeIt(t, j)
	if d := cmp.Diff([]string{"lock"}, names(t, f)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func TestFilesArePrivate(t *testing.T) {
	f := folder(t)
	f.Dir = filepath.Join(f.Dir, "data")
	for range 2 {
		j := open(t, f)
		appendTo(t, j, state.Entry{Run: "r", Kind: state.Note, Op: "looked"})
		modes := map[string]os.FileMode{}
		err := filepath.Walk(f.Dir, func(path string, info os.FileInfo, err error) error {
			modes[filepath.Base(path)] = info.Mode()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, mode := range modes {
			if mode.Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v, want nothing for others", name, mode)
			}
		}
		closeIt(t, j)
	}
	if d := cmp.Diff([]string{"journal.ndjson.backup", "lock", "state.json", "state.json.backup"}, names(t, f)); d != "" {
		t.Errorf("files after close (-want +got):\n%s", d)
	}
	if got := file(t, f, "state.json.backup"); !strings.Contains(got, `"serial":1`) {
		t.Errorf("backup: %s, want snapshot 1", got)
	}
}

func TestWhatCannotBeRememberedIsRefused(t *testing.T) {
	with := func(change func(r *state.Record)) *state.Record {
		r := record("dev", 1)
		change(&r)
		return &r
	}
	boot := func(v cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"boot": cty.TupleVal([]cty.Value{cty.MapVal(map[string]cty.Value{"kernel": v})})})
	}
	secret := cty.StringVal("hunter2").Mark("sensitive")
	for _, test := range []struct {
		name  string
		entry state.Entry
		want  string
	}{
		{
			"unknown",
			state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: with(func(r *state.Record) { r.Values = boot(cty.UnknownVal(cty.String)) })},
			`define of vm.dev: boot[0]["kernel"] is not known yet: the state holds only what is`,
		},
		{
			"unknown as a whole",
			state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: with(func(r *state.Record) { r.Policy = cty.DynamicVal })},
			"define of vm.dev: the value is not known yet: the state holds only what is",
		},
		{
			"marked",
			state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: with(func(r *state.Record) { r.Settings = boot(secret) })},
			`define of vm.dev: boot[0]["kernel"] is marked: the state holds no such value, only its digest`,
		},
		{
			"infinite",
			state.Entry{Kind: state.Done, Op: "define", Address: dev, Put: with(func(r *state.Record) { r.Values = cty.PositiveInfinity })},
			"define of vm.dev: an infinite number cannot be written",
		},
		{"kind", state.Entry{Kind: "ended", Op: "define", Address: dev}, `an entry of the unknown kind "ended"`},
		{"put and drop", state.Entry{Kind: state.Done, Address: dev, Drop: true, Put: with(func(*state.Record) {})}, "an entry that both puts and drops the record of vm.dev"},
		{"no address", state.Entry{Kind: state.Done, Drop: true}, "an entry that changes a record and names no address"},
		{"bad address", state.Entry{Kind: state.Done, Address: spec.Address{Kind: "vm", Name: "a b"}}, `an entry for "vm.a b", which is no address`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t)
			j := open(t, f)
			fine := state.Entry{Run: "r", Kind: state.Begin, Op: "fine", Address: dev}
			err := j.Append(t.Context(), fine, test.entry)
			if d := cmp.Diff("write the journal: "+test.want, fmt.Sprint(err)); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if got := contents(t, f); strings.Contains(got, "journal") || strings.Contains(got, "state.json") {
				t.Errorf("something was written:\n%s", got)
			}
			if got := interrupted(j.Snapshot()); got != "" {
				t.Errorf("in the snapshot: %s", got)
			}
			appendTo(t, j, fine)
			closeIt(t, j)
			if got := interrupted(read(t, f)); got != "r/0 fine vm.dev" {
				t.Errorf("after the next append: %s", got)
			}
		})
	}
}

func TestSnapshotIsACopy(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 1)
	r.Digests = map[string]string{"password": "abc"}
	uses := r.Uses
	appendTo(t, j,
		state.Entry{Run: "r", Kind: state.Done, Step: 0, Address: dev, Put: &r},
		state.Entry{Run: "r", Kind: state.Begin, Step: 1, Address: dev, Leaves: []string{"x"}, Put: &r})
	want := read(t, f)
	uses[0], r.Digests["password"] = dev, "changed by who appended it"
	got := j.Snapshot()
	if d := diff(want, got); d != "" {
		t.Errorf("changed by who appended (-want +got):\n%s", d)
	}
	got.Records[dev].Digests["password"], got.Records[dev].Uses[0] = "changed by who read it", dev
	got.Interrupted[0].Leaves[0], got.Interrupted[0].Put.Digests["password"] = "y", "z"
	got.Records[webA], got.Forgotten["id"] = r, dev
	if d := diff(want, j.Snapshot()); d != "" {
		t.Errorf("changed by who read (-want +got):\n%s", d)
	}
	closeIt(t, j)
}

func TestEndedContextStopsNoRecord(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Append(ctx, state.Entry{Run: "r", Kind: state.Begin, Op: "stop", Address: dev}); err != nil {
		t.Errorf("append: %v", err)
	}
	if _, err := f.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v, want the end of its context", err)
	}
	closeIt(t, j)
}

func TestClosedJournal(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	closeIt(t, j)
	closeIt(t, j)
	err := j.Append(t.Context(), state.Entry{Run: "r", Kind: state.Note})
	if want := "write the journal: the journal is closed"; err == nil || err.Error() != want {
		t.Errorf("append after close: %v, want %s", err, want)
	}
}

func TestLockedStateNamesItsHolder(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	holder, err := f.Holder(t.Context())
	host, hostErr := os.Hostname()
	if err != nil || hostErr != nil {
		t.Fatal(err, hostErr)
	}
	want := state.Holder{PID: os.Getpid(), Host: host, Command: "vmctl apply", Since: f.Now()}
	if d := cmp.Diff(&want, holder); d != "" {
		t.Errorf("held by (-want +got):\n%s", d)
	}
	_, err = f.Open(t.Context(), state.Owner{Command: "vmctl destroy", Wait: time.Hour})
	var locked *state.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("error %v, want a *LockedError", err)
	}
	if d := cmp.Diff("take the run lock in "+f.Dir+`: this process holds it already, for "vmctl apply"`, err.Error()); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
	closeIt(t, j)
	if holder, err := f.Holder(t.Context()); holder != nil || err != nil {
		t.Errorf("after close: held by %v, %v", holder, err)
	}
	for err, want := range map[*state.LockedError]string{
		{Where: "/d", Holder: state.Holder{PID: 7, Host: "ada", Command: "vmctl apply", Since: f.Now()}}: `take the run lock in /d: "vmctl apply" (pid 7 on ada) has held it since 2026-03-04T05:06:07Z` +
			"\nwait for it to end, or let this command wait with --lock-timeout=5m",
		{Where: "/d"}: "take the run lock in /d: another process holds it\nwait for it to end, or let this command wait with --lock-timeout=5m",
	} {
		if d := cmp.Diff(want, told(err)); d != "" {
			t.Errorf("error (-want +got):\n%s", d)
		}
	}
}

func TestFullDiskSaysWhatToDo(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/d/journal-1.ndjson", Err: syscall.ENOSPC}
	err := state.WithAdvice(full)
	want := "write /d/journal-1.ndjson: no space left on device\nfree some space there, then run the command again"
	if d := cmp.Diff(want, told(err)); d != "" || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error (-want +got):\n%s", d)
	}
	if err := state.WithAdvice(os.ErrPermission); !errors.Is(err, os.ErrPermission) || strings.Contains(told(err), "space") {
		t.Errorf("another error: %v", err)
	}
}

// row E22
// row X17
func TestSameStateSameBytes(t *testing.T) {
	all := map[spec.Address]state.Record{}
	forEach := func(do func(spec.Address)) {
		for i := range 20 {
			do(spec.Address{Kind: spec.VM, Name: "web", Key: string(rune('a' + i))})
		}
	}
	forEach(func(a spec.Address) {
		r := record(a.Key, 1)
		r.Digests = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
		r.Values = cty.ObjectVal(map[string]cty.Value{"names": cty.SetVal([]cty.Value{cty.StringVal("x"), cty.StringVal(a.Key)})})
		all[a] = r
	})
	var want string
	for round := range 100 {
		f := folder(t)
		j := open(t, f)
		var entries []state.Entry
		if round%2 == 0 {
			forEach(func(a spec.Address) {
				r := all[a]
				entries = append(entries, state.Entry{Run: "r", Kind: state.Done, Address: a, Put: &r})
			})
		} else {
			for a, r := range all {
				entries = append(entries, state.Entry{Run: "r", Kind: state.Done, Address: a, Put: &r})
			}
		}
		appendTo(t, j, entries...)
		closeIt(t, j)
		got := file(t, f, "state.json")
		if want == "" {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("round %d (-first +now):\n%s", round, d)
		}
	}
}

func TestSnapshotForPeople(t *testing.T) {
	f := folder(t)
	j := open(t, f)
	r := record("dev", 268435456)
	appendTo(t, j,
		state.Entry{Run: "r1", Kind: state.Done, Op: "define", Address: dev, Put: &r},
		state.Entry{Run: "r1", Kind: state.Begin, Step: 1, Op: "start", Address: dev, ID: r.ID, Name: r.Name, Leaves: []string{"a running guest <tiny> & its port"}})
	journal := file(t, f, "journal-0.ndjson")
	closeIt(t, j)
	golden(t, "journal.golden", journal)
	golden(t, "state.golden", file(t, f, "state.json"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}
