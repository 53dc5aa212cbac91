package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
)

// play starts a process of this test binary in a role of playWorker, and returns once it says that it is there. in is its
// standard input.
func play(t *testing.T, s job.Store, id job.ID, phase string) (child *process.Child, in *os.File) {
	t.Helper()
	program, found := os.Executable()
	stdin, in, made := os.Pipe()
	out, stdout, err := os.Pipe()
	if err := errors.Join(found, made, err); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), role+"="+s.Dir+"|"+string(id)+"|"+phase)
	child, err = process.Host{}.Start(process.Command{Path: program, Env: env, Stdin: stdin, Stdout: stdout, Stderr: os.Stderr})
	if err := errors.Join(err, stdin.Close(), stdout.Close(), out.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Force()                        //nolint:errcheck // it may have ended
		_ = errors.Join(in.Close(), out.Close()) //nolint:errcheck // they may be closed
	})
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatalf("the process did not come to the phase %s: %v", phase, err)
	}
	return child, in
}

// kill ends a process, and returns once it has ended.
func kill(t *testing.T, child *process.Child) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := child.Force(); err != nil {
		t.Fatal(err)
	}
	if _, ended := process.Status(child.Wait(limit)); !ended {
		t.Fatal("a process did not end within a minute after it was killed")
	}
}

// Of many processes that start a job of a block at once, one succeeds.
func TestOneProcessOfManyStartsAJobOfABlock(t *testing.T) {
	for range 3 {
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		var (
			children []*process.Child
			holds    []*os.File
		)
		for i := range 8 {
			child, in := play(t, s, job.ID(fmt.Sprintf("j-%d", i)), "contends")
			children, holds = append(children, child), append(holds, in)
		}
		for _, in := range holds { // each is at work once its input ends
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
		}
		counts := map[int]int{}
		limit, cancel := context.WithTimeout(t.Context(), time.Minute)
		for _, child := range children {
			status, ended := process.Status(child.Wait(limit))
			if !ended {
				t.Fatal("a process did not end within a minute")
			}
			counts[status]++
		}
		cancel()
		all, unread, err := s.List()
		if counts[0] != 1 || counts[statusActive] != 7 || len(all) != 1 || len(unread) > 0 || err != nil {
			t.Errorf("processes by their status: %v; %d records, %v %v; want one that succeeds, and one record", counts, len(all), unread, err)
		}
	}
}

// While the process lives that made a record, the block waits for it; once it was killed before it started a worker, the
// next job of the block may begin at once, and nobody can take the first any more.
func TestTheLauncherIsKilledBeforeAWorkerTakesTheJob(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
	p := open(t, s, nil)
	objects := func() int {
		inv, err := p.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: review, Want: want(nil)}}})
		if err != nil {
			t.Fatal(err)
		}
		return len(inv.Objects)
	}
	launcher, _ := play(t, s, "j-launched", "made")
	next := job.Record{ID: "j-next", Block: review.String(), Created: time.Now(), Command: []string{"true"}}
	var active *job.ActiveError
	if _, err := s.CreateOnly(t.Context(), next, observer); !errors.As(err, &active) || active.Active.ID != "j-launched" {
		t.Errorf("while its launcher lives: %v", err)
	}
	if n := objects(); n != 1 {
		t.Errorf("while its launcher lives the block has %d objects", n)
	}
	kill(t, launcher)
	if n := objects(); n != 0 {
		t.Errorf("it never ran, and the block has %d objects", n)
	}
	if r, err := s.CreateOnly(t.Context(), next, observer); err != nil || r.Revision != 1 {
		t.Errorf("once its launcher is gone: %v", err)
	}
	if r, err := s.Read("j-launched"); err != nil || r.Status != job.Failed || r.ErrorCode != job.NotLaunched {
		t.Errorf("it is %s (%s): %s, %v; want failed, not launched", r.Status, r.ErrorCode, r.Reason, err)
	}
	var state *job.StateError
	if _, err := s.Update(t.Context(), "j-launched", func(r *job.Record) error { return job.Begin(r, process.Identity{PID: 7}) }); !errors.As(err, &state) {
		t.Errorf("a worker that comes late: %v", err)
	}
}

// A job whose worker was started may run, also if its record cannot be read then: it does not count as not launched.
func TestARecordThatCannotBeReadOnceTheWorkerWasStarted(t *testing.T) {
	for _, says := range []string{"echo {}", ":"} {
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		if _, err := s.Create(job.Record{ID: "j", Created: time.Now()}); err != nil {
			t.Fatal(err)
		}
		worker := job.Launch{Program: "/bin/sh", Args: []string{"-c", ": >" + s.Path("j", "record.json") + "; " + says}}
		r, err := s.Start(t.Context(), "j", worker, time.Now)
		var unread *job.UnreadableError
		if !errors.As(err, &unread) || r.ID != "j" || r.Revision == 0 {
			t.Errorf("after %q: job %q, revision %d, %v", says, r.ID, r.Revision, err)
		}
	}
}
