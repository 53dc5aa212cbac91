package job_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/faultinject"
	"vmctl/internal/gitx"
	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// workOnBadDisk runs a worker on a disk that fails at one of its calls: "openat record.json 2 full" is the second file that is made
// for a new record. "gone" is broken from there on. A job in a VM runs on this host, too.
func workOnBadDisk(w job.Worker, call string) error {
	var name, file, how string
	var at, n int
	if _, err := fmt.Sscanf(call, "%s %s %d %s", &name, &file, &at, &how); err != nil {
		return err
	}
	r, err := w.Store.Read(w.ID)
	if err != nil {
		return err
	}
	run := w.Run
	if r.Inside != "" {
		inside := job.GuestWorker{Store: w.Store, ID: w.ID, Guest: onHost(filepath.Join(w.Store.Dir, "home")), Now: w.Now, Ready: w.Ready}
		run = func(ctx context.Context) error { return inside.Run(ctx, func() error { return nil }) }
	}
	trouble := map[string]syscall.Errno{"full": syscall.ENOSPC, "broken": syscall.EIO, "gone": syscall.EIO}[how]
	var ended error
	err = faultinject.Run(w.Store.Path(w.ID, ""), func(c faultinject.Call) syscall.Errno {
		if c.Name != name || !strings.Contains(c.Path, "/"+file) && !strings.Contains(c.Path, "/."+file+".") {
			return 0
		}
		if n++; n == at || n > at && how == "gone" {
			return trouble
		}
		return 0
	}, func() { ended = run(context.Background()) })
	return errors.Join(err, ended)
}

// gitLocks is a git during which the record of a job gets locked.
type gitLocks struct{ lock func() error }

func (g gitLocks) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	if err := g.lock(); err != nil {
		return gitx.Output{}, err
	}
	return gitHere{}.Run(ctx, c)
}

// withLockedRecord makes the record of a job be locked from the first look at its folder until its command has ended.
func withLockedRecord(w *job.Worker) {
	var held *lockfile.Lock
	w.Store.Git = gitLocks{func() (err error) {
		if held == nil {
			held, err = lockfile.Acquire(context.Background(), lockfile.Request{Path: w.Store.Path(w.ID, "lock"), Owner: w.Store.Owner})
		}
		return err
	}}
	w.Enter = func(context.Context, job.Record) (func() error, error) {
		return func() error { return held.Release() }, nil
	}
}

// Each kind of failure has a code of its own, and none is taken for a command that did not start. A record that cannot be parsed
// has one too: see TestUnreadableRecords.
//
// row J06
// row J58, of a run whose finalisation fails
func TestEachFailureHasACodeOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		phase  string // as of playWorker
		agent  string
		script []string
		code   job.ErrorCode
		reason string
	}{
		"a full disk, at the TMPDIR":            {phase: "mkdirat tmp 1 full", code: job.DiskFull, reason: "no space left on device"},
		"a full disk, at the copy":              {phase: "mkdirat copy 1 full", code: job.DiskFull, reason: "copy its workspace: "},
		"a full disk, once the command runs":    {phase: "openat record.json 2 full", code: job.DiskFull, reason: "record.json: make a file beside it: no space left on device"},
		"a full disk, at the end of the record": {phase: "openat record.json 4 full", code: job.DiskFull, reason: "record.json: make a file beside it: no space left on device"},
		"a lock":                                {phase: "locked", code: job.Locked, reason: "/lock: held by "},
		"no such program":                       {script: []string{"no-such-program"}, code: job.SpawnFailed, reason: "no-such-program"},
		"a record that cannot be written":       {phase: "openat record.json 4 broken", code: job.FinalizationFailed, reason: "input/output error"},
		"an output that is not understood":      {agent: "claude", script: []string{"echo", "{not JSON"}, code: job.NoResult, reason: "without a result"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withGit(t)
			id := job.ID("j-" + strings.ToLower(strings.NewReplacer(" ", "-", ",", "").Replace(name)))
			dir, _ := dirty(t)
			worker := startAs(t, s, id, dir, "true", c.phase, func() {
				_, err := s.Update(t.Context(), id, func(r *job.Record) error {
					r.Agent = cmp.Or(c.agent, job.Plain)
					if c.script != nil {
						r.Command = c.script
					}
					r.Containment, r.Scope = "worktree", "head"
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			status, ended := process.Status(worker.Wait(limit))
			if fails := strings.HasPrefix(c.phase, "openat record.json 4"); !ended || (status != 0) != fails {
				t.Errorf("the worker ended: %t, with %d; it is to fail: %t", ended, status, fails)
			}
			r := leftNothing(t, s, id)
			if r.Status != job.Failed || r.ErrorCode != c.code || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("it is %s %s: %s; want failed %s: %s", r.Status, r.ErrorCode, r.Reason, c.code, c.reason)
			}
		})
	}
}

// The record of a run that has ended cannot be written, once or not at all: its worker fails, and the record stays neither queued nor
// running. Where nothing can be written, the next look says that the job is stale, and the next reconcile writes it. A job in a VM has
// kept its end there: the next worker writes that.
//
// row J04
func TestAnEndThatCannotBeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		inside string
		phase  string
		then   job.Status // as the worker leaves it
		shown  job.Status
		last   job.Status // after the next reconcile, or the next worker of a VM
		code   job.ErrorCode
	}{
		"once":           {phase: "openat record.json 3 broken", then: job.Failed, shown: job.Failed, last: job.Failed, code: job.FinalizationFailed},
		"never":          {phase: "openat record.json 3 gone", then: job.Running, shown: job.Stale, last: job.Stale, code: job.StaleActiveJob},
		"once, in a VM":  {inside: "vm.dev", phase: "openat record.json 3 broken", then: job.Failed, shown: job.Failed, last: job.Failed, code: job.FinalizationFailed},
		"never, in a VM": {inside: "vm.dev", phase: "openat record.json 3 gone", then: job.Running, shown: job.Running, last: job.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			id := job.ID("j-" + strings.NewReplacer(" ", "-", ",", "", "V", "v", "M", "m").Replace(name) + fmt.Sprint(time.Now().UnixNano()))
			home := filepath.Join(s.Dir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			worker := startAs(t, s, id, t.TempDir(), "echo done", c.phase, func() {
				if _, err := s.Update(t.Context(), id, func(r *job.Record) error { r.Inside = c.inside; return nil }); err != nil {
					t.Error(err)
				}
			})
			limit, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if status, ended := process.Status(worker.Wait(limit)); !ended || status == 0 {
				t.Errorf("the worker ended: %t, with status %d; it is to fail", ended, status)
			}
			o := job.Observer{Processes: process.Host{}, Now: time.Now()}
			r, err := s.Read(id)
			if err != nil {
				t.Fatal(err)
			}
			if d := o.Derive(t.Context(), r); r.Status != c.then || d.Status != c.shown {
				t.Errorf("the worker leaves it %s, shown as %s (%s); want %s, shown as %s", r.Status, d.Status, d.Reason, c.then, c.shown)
			}
			if o.NeedsWorker(r) {
				again := job.GuestWorker{Store: s, ID: id, Guest: onHost(home), TakesUp: true, Now: time.Now, Ready: func(error) {}}
				if err := again.Run(t.Context(), func() error { return nil }); err != nil {
					t.Error(err)
				}
			}
			if _, failed, err := s.ReconcileAll(t.Context(), o); err != nil || len(failed) > 0 {
				t.Error(err, failed)
			}
			if r, err = s.Read(id); err != nil || r.Status != c.last || r.ErrorCode != c.code || (r.Reason == "") != (c.code == "") {
				t.Errorf("in the end it is %s %q (%s): %v; want %s %q", r.Status, r.ErrorCode, r.Reason, err, c.last, c.code)
			}
		})
	}
}
