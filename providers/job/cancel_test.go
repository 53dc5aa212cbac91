package job_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// asked is a host on which a test says how a process answers the request to end.
type asked struct {
	host
	answer  func(process.Identity) error // nil: there is no such process
	waited  error
	request *[]int // the pids that were asked
}

func (a asked) Request(id process.Identity) error {
	*a.request = append(*a.request, id.PID)
	if a.answer == nil {
		return &process.RefusedError{Process: id, Verdict: process.Gone, Reason: "no such process"}
	}
	return a.answer(id)
}

func (a asked) Wait(context.Context, ...process.Identity) error { return a.waited }

func (a asked) Force(process.Identity) ([]process.Identity, error) { return nil, nil }

// Every outcome of a cancel, what the record says afterwards, and who was asked to end.
//
// row J20, of the outcomes; row J21, of cancel; row J23; row J32
func TestCancelOutcomes(t *testing.T) {
	worker := process.Identity{Host: "ada", BootID: "b", PID: 7, StartTime: 70, Argv0: "vmctl"}
	command := process.Identity{Host: "ada", BootID: "b", PID: 8, StartTime: 80, Argv0: "sleep"}
	refuse := func(v process.Verdict) func(process.Identity) error {
		return func(id process.Identity) error {
			return &process.RefusedError{Process: id, Verdict: v, Reason: "as the test says"}
		}
	}
	without := func(change func(*process.Identity)) *process.Identity {
		id := worker
		change(&id)
		return &id
	}
	for _, c := range []struct {
		name    string
		status  job.Status
		worker  *process.Identity
		process *process.Identity
		host    host
		answer  func(process.Identity) error
		finish  bool  // the worker ends the record when it is asked
		waited  error // of waiting for the processes
		want    job.CancelOutcome
		after   job.Status
		asked   int
	}{
		{name: "queued", status: job.Queued, want: job.CancelPending, after: job.Cancelled},
		{name: "terminal", status: job.Completed, worker: &worker, want: job.AlreadyTerminal, after: job.Completed},
		{name: "the worker ends it", status: job.Running, worker: &worker, answer: func(process.Identity) error { return nil }, finish: true, want: job.Signaled, after: job.Cancelled, asked: 1},
		{name: "the worker does not end", status: job.Running, worker: &worker, answer: func(process.Identity) error { return nil }, waited: context.DeadlineExceeded, want: job.SignalFailed, after: job.Running, asked: 1},
		{name: "the signal fails", status: job.Running, worker: &worker, answer: func(process.Identity) error { return os.ErrPermission }, want: job.SignalFailed, after: job.Running, asked: 1},
		{name: "ended between the look and the signal", status: job.Running, worker: &worker, process: &command, finish: true, answer: refuse(process.Gone), want: job.AlreadyDead, after: job.Cancelled, asked: 1},
		{name: "all gone", status: job.Running, worker: &worker, process: &command, want: job.AlreadyDead, after: job.Cancelled, asked: 1},
		{name: "another process has its pid", status: job.Running, worker: &worker, process: &command, host: host{verdicts: map[int]process.Verdict{8: process.Reused}}, want: job.StalePID, after: job.Cancelled, asked: 1},
		{name: "the worker cannot be examined", status: job.Running, worker: &worker, answer: refuse(process.Unknown), want: job.Unverifiable, after: job.Running, asked: 1},
		{name: "the process cannot be examined", status: job.Running, worker: &worker, process: &command, host: host{verdicts: map[int]process.Verdict{8: process.Unknown}}, want: job.Unverifiable, after: job.Running, asked: 1},
		{name: "no worker in the record", status: job.Running, want: job.NoPIDInfo, after: job.Running},
		{name: "no start time", status: job.Running, worker: without(func(id *process.Identity) { id.StartTime = 0 }), want: job.NoPIDInfo, after: job.Running},
		{name: "no name", status: job.Running, worker: without(func(id *process.Identity) { id.Argv0 = "" }), want: job.NoPIDInfo, after: job.Running},
		{name: "no boot ID", status: job.Running, worker: without(func(id *process.Identity) { id.BootID = "" }), want: job.NoPIDInfo, after: job.Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			record(t, s, "j", c.status, func(r *job.Record) { r.Worker, r.Process = c.worker, c.process })
			var pids []int
			h := asked{host: c.host, answer: c.answer, waited: c.waited, request: &pids}
			if c.finish {
				h.answer = func(id process.Identity) error {
					if _, err := s.Update(t.Context(), "j", func(r *job.Record) error {
						return job.Finish(r, worker, job.Outcome{ExitCode: exit(0)}, noon)
					}); err != nil {
						t.Error(err)
					}
					return c.answer(id)
				}
			}
			_, got, err := job.Canceller{Store: s, Processes: h, By: "ann", Now: func() time.Time { return noon }}.Cancel(t.Context(), "j")
			after, unread := s.Read("j")
			if got != c.want || after.Status != c.after || unread != nil {
				t.Errorf("%s (%v), and it is %s: %v; want %s and %s", got, err, after.Status, unread, c.want, c.after)
			}
			if len(pids) != c.asked {
				t.Errorf("asked %v to end, want %d processes", pids, c.asked)
			}
			if good := err == nil; good != (c.want == job.Signaled || c.want == job.AlreadyDead || c.want == job.AlreadyTerminal || c.want == job.CancelPending) {
				t.Errorf("%s came with the error %v", got, err)
			}
			if err == nil && !after.Status.IsTerminal() {
				t.Errorf("a cancel without an error left it %s", after.Status)
			}
		})
	}
}

// row J19
func TestCancelWithoutAWritableRecord(t *testing.T) {
	worker := process.Identity{Host: "ada", BootID: "b", PID: 7, StartTime: 70, Argv0: "vmctl"}
	for _, c := range []struct {
		status job.Status
		want   job.CancelOutcome
		asked  int
		warned int
	}{
		{status: job.Queued, want: job.CancelFailed},
		{status: job.Running, want: job.SignalFailed, asked: 1, warned: 1},
	} {
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		before := record(t, s, "j", c.status, func(r *job.Record) {
			if c.status != job.Queued {
				r.Worker = &worker
			}
		})
		if err := errors.Join(os.RemoveAll(s.Path("j", "lock")), os.MkdirAll(s.Path("j", "lock/in-the-way"), 0o700)); err != nil {
			t.Fatal(err)
		}
		var (
			pids   []int
			warned []error
		)
		h := asked{answer: func(process.Identity) error { return nil }, waited: context.DeadlineExceeded, request: &pids}
		_, got, err := job.Canceller{
			Store: s, Processes: h, By: "ann", Now: func() time.Time { return noon }, Warn: func(err error) { warned = append(warned, err) },
		}.Cancel(t.Context(), "j")
		if got != c.want || err == nil || len(pids) != c.asked || len(warned) != c.warned {
			t.Errorf("%s: %s (%v), asked %v, warned %v; want %s, %d and %d", c.status, got, err, pids, warned, c.want, c.asked, c.warned)
		}
		if after, err := s.Read("j"); err != nil || after.Revision != before.Revision {
			t.Errorf("%s: the record is at revision %d: %v, before %d", c.status, after.Revision, err, before.Revision)
		}
	}
}

// The intent could not be recorded at first, and what was left of the job is ended: its record says that it was cancelled.
func TestCancelThatIsRecordedLate(t *testing.T) {
	worker := process.Identity{Host: "ada", BootID: "b", PID: 7, StartTime: 70, Argv0: "vmctl"}
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	record(t, s, "j", job.Running, func(r *job.Record) { r.Worker = &worker })
	if err := errors.Join(os.RemoveAll(s.Path("j", "lock")), os.MkdirAll(s.Path("j", "lock/in-the-way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	var pids []int
	h := asked{request: &pids, answer: func(id process.Identity) error {
		return errors.Join(os.RemoveAll(s.Path("j", "lock")), &process.RefusedError{Process: id, Verdict: process.Gone, Reason: "no such process"})
	}}
	r, got, err := job.Canceller{Store: s, Processes: h, By: "ann", Now: func() time.Time { return noon }}.Cancel(t.Context(), "j")
	if err != nil || got != job.AlreadyDead || r.Status != job.Cancelled || r.Cancel == nil || r.Cancel.By != "ann" {
		t.Errorf("%s, and it is %s: %s, %v; want already_dead, and cancelled by ann", got, r.Status, r.Reason, err)
	}
}

// waits is a host on which the wait for a process says how long it may take.
type waits struct {
	asked
	most *time.Duration
}

func (w waits) Wait(ctx context.Context, _ ...process.Identity) error {
	until, _ := ctx.Deadline()
	*w.most = time.Until(until)
	return context.DeadlineExceeded
}

// A cancel gives the worker of a job in a copy the time to keep what the job changed.
func TestCancelWaitsUntilEditsAreKept(t *testing.T) {
	for containment, least := range map[string]time.Duration{"none": time.Minute, "worktree": 10 * time.Minute} {
		worker := process.Identity{Host: "ada", BootID: "b", PID: 7, StartTime: 70, Argv0: "vmctl"}
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		record(t, s, "j", job.Running, func(r *job.Record) {
			r.Worker, r.Containment, r.Grace = &worker, job.Containment(containment), job.Duration(time.Minute)
		})
		var most time.Duration
		h := waits{asked{answer: func(process.Identity) error { return nil }, request: &[]int{}}, &most}
		_, got, err := job.Canceller{Store: s, Processes: h, By: "ann", Now: func() time.Time { return noon }}.Cancel(t.Context(), "j")
		if got != job.SignalFailed || !errors.Is(err, context.DeadlineExceeded) || most < least || containment == "none" && most > 2*time.Minute {
			t.Errorf("%s: %s (%v), it may take %s; want at least %s", containment, got, err, most, least)
		}
	}
}

// A second worker does not get a job that has ended.
//
// row J57
func TestNoSecondWorkerForATerminalJob(t *testing.T) {
	for _, status := range []job.Status{job.Completed, job.Cancelled, job.Failed, job.Stale} {
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		record(t, s, "j", job.Running, func(r *job.Record) { r.Worker = &process.Identity{PID: 7} })
		if _, err := s.Update(t.Context(), "j", func(r *job.Record) error { r.Status = status; return nil }); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(s.Path("j", "record.json"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Update(t.Context(), "j", func(r *job.Record) error { return job.Begin(r, process.Identity{PID: 9}) })
		var state *job.StateError
		if !errors.As(err, &state) || state.Status != status {
			t.Errorf("%s: a second worker got %v, want an error about its status", status, err)
		}
		if after, err := os.ReadFile(s.Path("j", "record.json")); err != nil || string(after) != string(before) {
			t.Errorf("%s: the record was written: %v\n%s", status, err, after)
		}
	}
}
