package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// host says of each process what a test lets it say, and ends none.
type host struct {
	process.Host
	verdicts map[int]process.Verdict // by pid; none: gone
	left     []process.Identity      // with the marker of the job
	err      error                   // of looking for the marker
}

func (h host) Verify(id process.Identity) (process.Verdict, string) {
	if v := h.verdicts[id.PID]; v != "" {
		return v, "as the test says"
	}
	return process.Gone, "no such process"
}

func (h host) WithVariable(context.Context, string) ([]process.Identity, error) {
	return h.left, h.err
}

// row J11; row J28, of reconcile; row J10, of reconcile
func TestReconcile(t *testing.T) {
	worker, command := process.Identity{PID: 7}, process.Identity{PID: 8}
	hidden := errors.New("proc is not mounted")
	for _, c := range []struct {
		name    string
		status  job.Status
		starter *process.Identity // that was to start its worker
		worker  *process.Identity
		process *process.Identity
		cancel  *job.Cancel
		created time.Time // zero: a minute ago
		window  time.Duration
		host    host
		want    job.Status
		reason  string
	}{
		{name: "its own window", status: job.Queued, created: noon.Add(-2 * job.Window), window: 3 * job.Window, want: job.Queued, reason: "no worker took it"},
		{name: "its own window is over", status: job.Queued, created: noon.Add(-time.Minute), window: time.Minute, want: job.Stale, reason: "no worker took it within 1m0s"},
		{name: "its launcher is gone", status: job.Queued, starter: &worker, want: job.Failed, reason: "and no worker has taken it: it never ran"},
		{name: "its launcher lives", status: job.Queued, starter: &worker, host: host{verdicts: map[int]process.Verdict{7: process.Match}}, want: job.Queued, reason: "no worker took it"},
		{name: "its launcher lives after the window", status: job.Queued, starter: &worker, created: noon.Add(-job.Window), host: host{verdicts: map[int]process.Verdict{7: process.Match}}, want: job.Stale, reason: "within"},
		{name: "its launcher cannot be examined", status: job.Queued, starter: &worker, host: host{verdicts: map[int]process.Verdict{7: process.Unknown}}, want: job.Queued, reason: "no worker took it"},
		{name: "its launcher is gone, its worker is under way", status: job.Queued, starter: &worker, host: host{left: []process.Identity{{PID: 9}}}, want: job.Queued, reason: "process 9 is about to take it"},
		{name: "its launcher is gone, nobody knows of its worker", status: job.Queued, starter: &worker, host: host{err: hidden}, want: job.Queued, reason: "proc is not mounted"},
		{name: "the same after the window", status: job.Queued, starter: &worker, created: noon.Add(-job.Window), host: host{err: hidden}, want: job.Stale, reason: "no worker took it within 1h0m0s"},
		{name: "its launcher is gone, workers cannot be found", status: job.Queued, starter: &worker, host: host{err: errors.ErrUnsupported}, want: job.Queued, reason: "no worker took it"},
		{name: "fresh, left alone", status: job.Queued, want: job.Queued, reason: "no worker took it"},
		{name: "window", status: job.Queued, created: noon.Add(-job.Window), want: job.Stale, reason: "no worker took it within 1h0m0s"},
		{name: "just within the window", status: job.Queued, created: noon.Add(-job.Window + 1), want: job.Queued, reason: "no worker took it"},
		{name: "made in the future", status: job.Queued, created: noon.Add(time.Hour), want: job.Queued, reason: "no worker took it"},
		{name: "live, left", status: job.Running, worker: &worker, process: &command, host: host{verdicts: map[int]process.Verdict{7: process.Match}}, want: job.Running},
		{name: "dead pid", status: job.Running, worker: &worker, process: &command, want: job.Stale, reason: "its worker and its process are gone"},
		{
			name: "reused pid", status: job.Running, worker: &worker, process: &command,
			host: host{verdicts: map[int]process.Verdict{7: process.Reused, 8: process.Reused}}, want: job.Stale, reason: "its worker and its process are gone",
		},
		{
			name: "dead worker, live process", status: job.Running, worker: &worker, process: &command,
			host: host{verdicts: map[int]process.Verdict{8: process.Match}}, want: job.Running, reason: "process 8 runs on",
		},
		{
			name: "dead worker and process, live tool", status: job.Running, worker: &worker, process: &command,
			host: host{left: []process.Identity{{PID: 9}}}, want: job.Running, reason: "process 9 of it runs on",
		},
		{
			name: "capture error of the worker", status: job.Running, worker: &worker, process: &command,
			host: host{verdicts: map[int]process.Verdict{7: process.Unknown}}, want: job.Running, reason: "its worker cannot be examined",
		},
		{
			name: "capture error of the process", status: job.Running, worker: &worker, process: &command,
			host: host{verdicts: map[int]process.Verdict{8: process.Unknown}}, want: job.Running, reason: "its process cannot be examined",
		},
		{
			name: "capture error of the rest", status: job.Running, worker: &worker, process: &command,
			host: host{err: hidden}, want: job.Running, reason: "cannot be examined: proc is not mounted",
		},
		{name: "no process in the record, none lives", status: job.Starting, worker: &worker, want: job.Stale, reason: "nothing that it started lives"},
		{
			name: "no process in the record, one lives", status: job.Starting, worker: &worker,
			host: host{left: []process.Identity{{PID: 9}}}, want: job.Starting, reason: "process 9 of it runs on",
		},
		{
			name: "no process in the record, and none can be found", status: job.Starting, worker: &worker,
			host: host{err: errors.ErrUnsupported}, want: job.Starting, reason: "its process is not known",
		},
		{
			name: "the same after the window", status: job.Starting, worker: &worker, created: noon.Add(-2 * job.Window),
			host: host{err: errors.ErrUnsupported}, want: job.Stale, reason: "its process is not known within 1h0m0s",
		},
		{name: "cancelled, and dead", status: job.Running, worker: &worker, process: &command, cancel: &job.Cancel{By: "ann"}, want: job.Cancelled, reason: "cancelled by ann"},
		{name: "terminal, ignored", status: job.Completed, worker: &worker, process: &command, want: job.Completed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			if c.created.IsZero() {
				c.created = noon.Add(-time.Minute)
			}
			r := record(t, s, "j", c.status, func(r *job.Record) {
				r.Launcher, r.Worker, r.Process, r.Cancel, r.Created = c.starter, c.worker, c.process, c.cancel, c.created
				r.Window = job.Duration(c.window)
			})
			o := job.Observer{Processes: c.host, Now: noon}
			derived := o.Derive(t.Context(), r)
			if derived.Status != c.want {
				t.Errorf("derived %s (%s), want %s", derived.Status, derived.Reason, c.want)
			}
			if _, failed, err := s.ReconcileAll(t.Context(), o); err != nil || len(failed) > 0 {
				t.Fatal(err, failed)
			}
			after, err := s.Read("j")
			if err != nil || after.Status != c.want {
				t.Fatalf("reconciled it is %s: %v, want %s", after.Status, err, c.want)
			}
			if said := derived.Reason + after.Reason; !strings.Contains(said, c.reason) {
				t.Errorf("the reason is %q, want %q", said, c.reason)
			}
			if c.status == c.want && after.Revision != r.Revision {
				t.Errorf("the record was written: revision %d, before %d", after.Revision, r.Revision)
			}
		})
	}
}

// record writes a record with a status that was reached in the ways that there are.
func record(t *testing.T, s job.Store, id job.ID, status job.Status, fill func(*job.Record)) job.Record {
	t.Helper()
	r, err := s.Create(job.Record{ID: id, Created: noon})
	way := map[job.Status][]job.Status{
		job.Queued: {job.Queued}, job.Starting: {job.Starting}, job.Running: {job.Starting, job.Running},
		job.Completed: {job.Starting, job.Running, job.Completed},
	}
	for _, next := range way[status] {
		if err == nil {
			r, err = s.Update(t.Context(), id, func(r *job.Record) error {
				fill(r)
				r.Status = next
				return nil
			})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// row J08
func TestReconcileManyAndOneUnreadable(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	for i := range 3 {
		record(t, s, job.ID(fmt.Sprintf("dead-%d", i)), job.Running, func(r *job.Record) { r.Worker = &process.Identity{PID: 7} })
	}
	if err := os.MkdirAll(filepath.Join(s.Path("folder", ""), "record.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	closed, failed, err := s.ReconcileAll(t.Context(), job.Observer{Processes: host{}, Now: noon})
	if err != nil || len(closed) != 3 || len(failed) != 1 || !strings.Contains(failed[0].Error(), "job folder") {
		t.Errorf("ended %d records, and failed: %v %v; want 3, and one failure that names the job", len(closed), failed, err)
	}
}

// A worker finishes while reconcile decides about the record that it read before.
//
// row J07, of reconcile
func TestTerminalWinsAgainstReconcile(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	worker := process.Identity{PID: 7}
	read := record(t, s, "j", job.Running, func(r *job.Record) { r.Worker = &worker })
	if _, err := s.Update(t.Context(), "j", func(r *job.Record) error { return job.Finish(r, worker, job.Outcome{ExitCode: exit(0)}, noon) }); err != nil {
		t.Fatal(err)
	}
	_, err := s.Reconcile(t.Context(), read, job.Observer{Processes: host{}, Now: noon})
	var conflict *job.ConflictError
	if now, unread := s.Read("j"); !errors.As(err, &conflict) || unread != nil || now.Status != job.Completed {
		t.Errorf("reconcile: %v, and it is %s; want a conflict and completed", err, now.Status)
	}
}

// A machine that was started again runs none of the processes of its records.
func TestHostRestarted(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	me, err := process.Host{}.Capture(t.Context(), os.Getpid())
	if err != nil {
		t.Skip("processes cannot be recognised here: ", err)
	}
	me.BootID = "another"
	r := record(t, s, "j-restarted", job.Running, func(r *job.Record) { r.Worker, r.Process = &me, &me })
	d := job.Observer{Processes: process.Host{}, Now: noon}.Derive(t.Context(), r)
	if d.Status != job.Stale || !strings.Contains(d.Reason, "before this machine was started") {
		t.Errorf("derived %s (%s), want stale and a word of the start", d.Status, d.Reason)
	}
}

// A record of the first version of the schema is read: it lacks keys.
func TestARecordOfTheFirstVersionIsRead(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	record(t, s, "j", job.Running, func(*job.Record) {})
	path := s.Path("j", "record.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.NewReplacer(fmt.Sprintf(`"format_version": %d`, job.FormatVersion), `"format_version": 1`, `  "launcher": null,`+"\n", "").Replace(string(text))
	if strings.Contains(old, "launcher") || !strings.Contains(old, `"format_version": 1`) {
		t.Fatalf("the record is not of version 1:\n%s", old)
	}
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.Update(t.Context(), "j", func(r *job.Record) error { return job.Close(r, "gone", noon) })
	if err != nil || r.FormatVersion != job.FormatVersion || r.Status != job.Stale {
		t.Errorf("version %d, %s, %v", r.FormatVersion, r.Status, err)
	}
}

// dying is a host on which the worker of a job writes its end, and is gone, between the reading of its record and the look at its
// process.
type dying struct {
	host
	end func()
}

func (d dying) Verify(id process.Identity) (process.Verdict, string) {
	d.end()
	return d.host.Verify(id)
}

// A job that ends while it is looked at is no stale one.
//
// row J07, of what is shown
func TestAJobThatEndsWhileItIsLookedAt(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	for _, ends := range []bool{true, false} {
		id := job.ID(fmt.Sprintf("j-ends-%t", ends))
		r := record(t, s, id, job.Running, func(r *job.Record) { r.Worker, r.Process = &process.Identity{PID: 7}, nil })
		done := !ends
		o := job.Observer{Now: noon, Processes: dying{host: host{}, end: func() {
			if done {
				return
			}
			done = true
			zero := 0
			if _, err := s.Update(t.Context(), id, func(r *job.Record) error {
				return job.Finish(r, *r.Worker, job.Outcome{ExitCode: &zero}, noon)
			}); err != nil {
				t.Error(err)
			}
		}}}
		want := map[bool]job.Status{true: job.Completed, false: job.Stale}[ends]
		if now, d := s.Look(t.Context(), r, o); d.Status != want || ends && now.Status != want {
			t.Errorf("ends %t: it is %s, derived %s (%s); want %s", ends, now.Status, d.Status, d.Reason, want)
		}
	}
}

// between is a host on which something happens at each look at a process.
type between struct {
	host
	happens func()
}

func (b between) Verify(id process.Identity) (process.Verdict, string) {
	b.happens()
	return b.host.Verify(id)
}

func (b between) WithVariable(ctx context.Context, marker string) ([]process.Identity, error) {
	b.happens()
	return b.host.WithVariable(ctx, marker)
}

// A worker takes its three steps in every way before, between and after the looks of two reconciles, which take it for dead. What it
// writes last stays: that its command completed, or, if it was taken for dead before it could record its process, that it gave up. A
// worker that was taken for dead before it began does not begin.
//
// row J07
func TestTheWorkersResultIsStoredWhereverAReconcileComes(t *testing.T) {
	const moments = 8
	launcher, worker, command := process.Identity{PID: 6}, process.Identity{PID: 7}, process.Identity{PID: 8}
	ends := map[job.Status]int{}
	mistaken := 0
	dir := t.TempDir()
	for begin := range moments {
		for run := begin; run < moments; run++ {
			for finish := run; finish < moments; finish++ {
				s := job.Store{Dir: filepath.Join(dir, fmt.Sprint(begin, run, finish)), Owner: lockfile.Owner{PID: os.Getpid()}}
				if _, err := s.Create(job.Record{ID: "j", Created: noon, Launcher: &launcher}); err != nil {
					t.Fatal(err)
				}
				step := func(change func(*job.Record) error) bool {
					_, err := s.Update(t.Context(), "j", change)
					var state *job.StateError
					if err != nil && !errors.As(err, &state) {
						t.Fatal(err)
					}
					return err == nil
				}
				began, want := false, job.Outcome{ExitCode: exit(0)}
				steps := []func() bool{
					func() bool {
						began = step(func(r *job.Record) error { return job.Begin(r, worker) })
						return began
					},
					func() bool {
						if !step(func(r *job.Record) error { return job.Run(r, worker, &command, noon) }) {
							want = job.Outcome{ErrorCode: job.FinalizationFailed, Reason: "its process could not be recorded"}
						}
						return true
					},
					func() bool {
						if !step(func(r *job.Record) error { return job.Finish(r, worker, want, noon) }) {
							t.Errorf("steps at %d, %d and %d: the worker could not finish", begin, run, finish)
						}
						return false
					},
				}
				moment := 0
				happens := func() {
					for at := []int{begin, run, finish}; len(steps) > 0 && at[3-len(steps)] <= moment; {
						next := steps[0]
						if steps = steps[1:]; !next() {
							steps = nil
						}
					}
					moment++
				}
				o := job.Observer{Processes: between{happens: happens}, Now: noon}
				for range 2 {
					happens()
					closed, failed, err := s.ReconcileAll(t.Context(), o)
					if err != nil || len(failed) > 0 {
						t.Fatal(err, failed)
					}
					if mistaken += len(closed); len(steps) == 0 && len(closed) > 0 && began {
						t.Errorf("steps at %d, %d and %d: a job that had ended was taken for dead", begin, run, finish)
					}
				}
				for moment = moments; len(steps) > 0; {
					happens()
				}
				r, err := s.Read("j")
				if err != nil {
					t.Fatal(err)
				}
				ends[r.Status]++
				switch {
				case !began && (r.Status != job.Failed || r.ErrorCode != job.NotLaunched):
					t.Errorf("steps at %d, %d and %d: it never began, and is %s %q", begin, run, finish, r.Status, r.ErrorCode)
				case began && (r.ErrorCode != want.ErrorCode || (r.Status == job.Completed) != (want.ErrorCode == "")):
					t.Errorf("steps at %d, %d and %d: it is %s %q: %s; the worker wrote %q", begin, run, finish, r.Status, r.ErrorCode, r.Reason, want.ErrorCode)
				}
			}
		}
	}
	if ends[job.Completed] == 0 || ends[job.Failed] == 0 || mistaken < 20 {
		t.Errorf("the jobs ended %v, and %d times a reconcile took a worker for dead: this test finds nothing", ends, mistaken)
	}
}
