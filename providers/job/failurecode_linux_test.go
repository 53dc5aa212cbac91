package job_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// for a new record.
func workOnBadDisk(w job.Worker, call string) error {
	var name, file, how string
	var at, n int
	if _, err := fmt.Sscanf(call, "%s %s %d %s", &name, &file, &at, &how); err != nil {
		return err
	}
	trouble := map[string]syscall.Errno{"full": syscall.ENOSPC, "broken": syscall.EIO}[how]
	var ended error
	err := faultinject.Run(w.Store.Path(w.ID, ""), func(c faultinject.Call) syscall.Errno {
		if c.Name != name || !strings.Contains(c.Path, "/"+file) && !strings.Contains(c.Path, "/."+file+".") {
			return 0
		}
		if n++; n == at {
			return trouble
		}
		return 0
	}, func() { ended = w.Run(context.Background()) })
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
