package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func exit(n int) *int { return &n }

// row J02
func TestOnlyTheTransitionsOfTheTable(t *testing.T) {
	want := map[job.Status][]job.Status{
		job.Queued:   {job.Starting, job.Failed, job.Cancelled, job.Stale},
		job.Starting: {job.Running, job.Failed, job.Cancelled, job.Stale},
		job.Running:  {job.Completed, job.Failed, job.Cancelled, job.Stale},
		job.Stale:    {job.Completed, job.Failed, job.Cancelled},
	}
	for _, from := range job.Statuses() {
		var got []job.Status
		for _, to := range job.Statuses() {
			r := job.Record{ID: "j", Status: from, Revision: 1}
			if err := job.Apply(&r, func(r *job.Record) error { r.Status = to; return nil }); err == nil && to != from {
				got = append(got, to)
			}
		}
		if diff := cmp.Diff(want[from], got); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
}

// A record that has ended changes in what it says of its copy, and in nothing else.
func TestARecordThatHasEndedStays(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*job.Record)
		may    bool
	}{
		"nothing": {func(*job.Record) {}, true},
		"its edits": {func(r *job.Record) {
			r.Edits, r.Patch, r.PatchBytes = []job.Edit{{Path: "a", Kind: job.Added}}, true, 7
		}, true},
		"its copy":  {func(r *job.Record) { r.LeftCopy = &job.LeftCopy{Path: "/copy"}; r.Warnings = []string{"it stays"} }, true},
		"reason":    {func(r *job.Record) { r.Reason = "another" }, false},
		"exit code": {func(r *job.Record) { r.ExitCode = exit(0) }, false},
		"both":      {func(r *job.Record) { r.LeftCopy, r.Ended = &job.LeftCopy{Path: "/copy"}, noon }, false},
	} {
		r := job.Record{ID: "j", Status: job.Stale, Revision: 4, ExitCode: exit(1)}
		if err := job.Apply(&r, func(r *job.Record) error { c.change(r); return nil }); err == nil != c.may || r.Revision == 5 != c.may {
			t.Errorf("%s: revision %d, %v; it may change: %t", name, r.Revision, err, c.may)
		}
	}
}

// row J15, of the classification; row J16, of it
func TestHowARunIsClassified(t *testing.T) {
	asked := &job.Cancel{By: "ann"}
	for _, c := range []struct {
		name    string
		cancel  *job.Cancel
		outcome job.Outcome
		want    job.Status
		code    job.ErrorCode
	}{
		{name: "exit 0", outcome: job.Outcome{ExitCode: exit(0)}, want: job.Completed},
		{name: "exit 2", outcome: job.Outcome{ExitCode: exit(2)}, want: job.Failed, code: job.ExitStatus},
		{name: "TERM", outcome: job.Outcome{ExitCode: exit(143)}, want: job.Cancelled},
		{name: "KILL", outcome: job.Outcome{ExitCode: exit(137)}, want: job.Cancelled},
		{name: "INT", outcome: job.Outcome{ExitCode: exit(130)}, want: job.Cancelled},
		{name: "HUP", outcome: job.Outcome{ExitCode: exit(129)}, want: job.Cancelled},
		{name: "timer, then TERM", outcome: job.Outcome{ExitCode: exit(143), ErrorCode: job.TimedOut}, want: job.Failed, code: job.TimedOut},
		{name: "asked without a record of it, traps TERM, exit 0", outcome: job.Outcome{ExitCode: exit(0), Requested: true}, want: job.Cancelled},
		{name: "cancelled, traps TERM, exit 0", cancel: asked, outcome: job.Outcome{ExitCode: exit(0)}, want: job.Cancelled},
	} {
		worker := process.Identity{PID: 7}
		r := job.Record{ID: "j", Status: job.Running, Worker: &worker, Cancel: c.cancel}
		if err := job.Finish(&r, worker, c.outcome, noon); err != nil || r.Status != c.want || r.ErrorCode != c.code {
			t.Errorf("%s: %s %q %v, want %s %q", c.name, r.Status, r.ErrorCode, err, c.want, c.code)
		}
	}
}

// Two workers, a cancel and a reconcile take the steps of their protocol in every order that a
// seeded scheduler finds.
//
// row J07, of the record; row J17, of the record; row J24, of the record
func TestInterleavingsOfTheRecord(t *testing.T) {
	for seed := range uint64(20000) {
		rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a schedule is no secret
		r := job.Record{ID: "j", Status: job.Queued, Created: noon}
		spawned, finished, asked := 0, 0, false
		var history []job.Status
		apply := func(change func(*job.Record) error) bool {
			err := job.Apply(&r, change)
			history = append(history, r.Status)
			return err == nil
		}
		worker := func(pid int) []func() bool {
			me := process.Identity{PID: pid}
			return []func() bool{
				func() bool { return apply(func(r *job.Record) error { return job.Queue(r, me, "it waits") }) },
				func() bool { return apply(func(r *job.Record) error { return job.Begin(r, me) }) },
				func() bool { spawned++; return true },
				func() bool {
					return apply(func(r *job.Record) error { return job.Run(r, me, &process.Identity{PID: pid + 100}, noon) })
				},
				func() bool {
					finished++
					return apply(func(r *job.Record) error { return job.Finish(r, me, job.Outcome{ExitCode: exit(0)}, noon) })
				},
			}
		}
		actors := [][]func() bool{
			worker(1), worker(2),
			{func() bool {
				ok := apply(func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) })
				asked = ok
				return ok
			}},
			{func() bool { return apply(func(r *job.Record) error { return job.Close(r, "taken for dead", noon) }) }},
		}
		for len(actors) > 0 {
			i := rng.IntN(len(actors))
			ok := actors[i][0]()
			if actors[i] = actors[i][1:]; !ok || len(actors[i]) == 0 {
				actors = append(actors[:i], actors[i+1:]...)
			}
		}
		switch {
		case spawned > 1:
			t.Fatalf("seed %d: %d commands were started: %v", seed, spawned, history)
		case asked && r.Status != job.Cancelled:
			t.Fatalf("seed %d: cancelled, and it ended %s: %v", seed, r.Status, history)
		case finished == 1 && r.Status == job.Stale:
			t.Fatalf("seed %d: the result was lost: %v", seed, history)
		case !r.Status.IsTerminal():
			t.Fatalf("seed %d: it ended %s: %v", seed, r.Status, history)
		}
	}
}

// row J22, of the store; row J42, of the IDs; row J45, of the store
func TestUnreadableRecords(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	for _, id := range []job.ID{"", ".", "..", "../x", "a/b", "/etc", "a\x00", "A"} {
		if _, err := s.Create(job.Record{ID: id}); err == nil {
			t.Errorf("a job with the ID %q was made", id)
		}
		if _, err := s.Read(id); err == nil {
			t.Errorf("a job with the ID %q was read", id)
		}
	}
	if _, err := s.Create(job.Record{ID: "weird"}); err != nil {
		t.Fatal(err)
	}
	path := s.Path("weird", "record.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err = json.Unmarshal(data, &keys); err == nil {
		keys["status"] = "weird"
		data, err = json.Marshal(keys)
	}
	if err = errors.Join(err, os.WriteFile(path, data, 0o600), os.MkdirAll(filepath.Join(s.Dir, "folder", "record.json"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for id, code := range map[job.ID]string{"weird": "bad_state", "folder": "read_failed"} {
		_, err := s.Update(t.Context(), id, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) })
		var unread *job.UnreadableError
		if !errors.As(err, &unread) || unread.Code != code {
			t.Errorf("%s: %v, want %s", id, err, code)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(data) {
		t.Errorf("the unreadable record was written: %s %v", after, err)
	}
}

// row X05, of jobs
// row J13
func TestCommitRefusesAnOldRevision(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r, err := s.Create(job.Record{ID: "j"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), "j", func(r *job.Record) error { return job.Begin(r, process.Identity{PID: 7}) }); err != nil {
		t.Fatal(err)
	}
	_, err = s.Commit(t.Context(), "j", r.Revision, func(r *job.Record) error { return job.Close(r, "", noon) })
	var conflict *job.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("a commit at revision 1 of a record at revision 2: %v, want a conflict", err)
	}
}

// A word of a record that this version does not know is not guessed.
func TestUnknownWordsOfARecordAreNotGuessed(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	for id, r := range map[job.ID]job.Record{
		"jail": {Containment: "jail"}, "all": {Containment: job.InCopy, Scope: "all"}, "known": {Containment: job.InCopy, Scope: job.Staged}, "old": {},
	} {
		r.ID = id
		if _, err := s.Create(r); err != nil {
			t.Fatal(err)
		}
	}
	all, unread, err := s.List()
	if text := errors.Join(unread...).Error(); err != nil || len(all) != 2 || len(unread) != 2 ||
		!strings.Contains(text, `containment "jail" is not known here`) || !strings.Contains(text, `scope "all" is not known here`) {
		t.Errorf("%d are read, and of the others it is said:\n%s\n%v", len(all), text, err)
	}
}

// A record names as many of the processes that a command left behind as it has room for.
func TestARecordNamesSoManyLeftovers(t *testing.T) {
	worker := process.Identity{PID: 7}
	r, status, left := job.Record{ID: "j", Status: job.Running, Worker: &worker}, 0, []string{}
	for i := range 5000 {
		left = append(left, fmt.Sprintf("pid %d (sleep)", i))
	}
	err := job.Finish(&r, worker, job.Outcome{ExitCode: &status, Leftovers: left}, noon)
	if n := len(r.Leftovers); err != nil || n != 1000 || r.Leftovers[n-1] != left[n-1] {
		t.Errorf("it names %d: %v", len(r.Leftovers), err)
	}
}
