package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// role makes a process of this test binary a worker: "folder|ID|phase".
const role = "JOB_TEST_WORKER"

func TestMain(m *testing.M) {
	if as := strings.Split(os.Getenv(role), "|"); len(as) == 3 {
		if err := playWorker(as[0], job.ID(as[1]), as[2]); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n") //nolint:errcheck // it is for people
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// statusActive is the status of a process that another one was before.
const statusActive = 9

// playWorker runs a job as far as a phase, says that it is there, and stays there. In the phase "made" it is the launcher.
func playWorker(dir string, id job.ID, phase string) error {
	stay := func() {
		_, _ = os.Stdout.WriteString("there\n") //nolint:errcheck // the test notices
		time.Sleep(time.Hour)
	}
	s := job.Store{Dir: dir, Owner: lockfile.Owner{PID: os.Getpid()}, Git: gitHere{}}
	switch phase {
	case "contends":
		_, _ = os.Stdout.WriteString("there\n") //nolint:errcheck // the test notices
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
		r := job.Record{ID: id, Block: review.String(), Created: time.Now(), Command: []string{"true"}}
		_, err := s.CreateOnly(context.Background(), r, job.Observer{Processes: process.Host{}, Now: time.Now()})
		var active *job.ActiveError
		if errors.As(err, &active) {
			os.Exit(statusActive)
		}
		return err
	case "made":
		me, err := process.Host{}.Capture(context.Background(), os.Getpid())
		if err == nil {
			r := job.Record{ID: id, Block: review.String(), Created: time.Now(), Command: []string{"true"}, Launcher: &me}
			_, err = s.CreateOnly(context.Background(), r, job.Observer{Processes: process.Host{}, Now: time.Now()})
		}
		if err == nil {
			stay()
		}
		return err
	}
	w := job.Worker{
		Store: s, ID: id, Environ: []string{"PATH=" + os.Getenv("PATH")},
		Enter: func(context.Context, job.Record) (func() error, error) {
			if phase == "queued" {
				stay()
			}
			return func() error { return nil }, nil
		},
		Ready: func(error) {
			if phase == "running" {
				stay()
			}
		},
		Now: func() time.Time {
			if phase == "spawned" {
				stay() // the record does not say yet that the command runs
			}
			if _, err := os.Stat(s.Path(id, "over")); err == nil && phase == "ended" {
				stay() // the record does not say yet that the command has ended
			}
			if _, err := os.Stat(s.Path(id, "edits")); err == nil && phase == "kept" {
				stay()
			}
			return time.Now()
		},
	}
	switch phase {
	case "ticks": // an hour for each line that the command counts
		w.Now = func() time.Time {
			text, _ := os.ReadFile(s.Path(id, "count"))         //nolint:errcheck // there is none at first
			_ = os.WriteFile(s.Path(id, "looked"), text, 0o600) //nolint:errcheck // the command waits for it
			return noon.Add(time.Duration(len(text)) * time.Hour)
		}
	case "filling":
		w.Store.Git = gitStays{"cat-file", dir, stay}
	case "add", "diff-tree", "diff-index":
		w.Store.Git = gitStays{phase, s.Path(id, "over"), stay}
	case "fails 2", "fails 3":
		w.Store.Git = gitFails{note: s.Path(id, "asked"), most: int(phase[len(phase)-1] - '0')}
	case "locked":
		withLockedRecord(&w)
	case "poor":
		return cleanPoorly(s)
	case "reconciles", "cancels", "prunes", "prunes bare":
		return tidy(s, id, phase)
	case "copies":
		told := false
		w.Store.Git, w.Ready = gitCopies{store: s, id: id, told: &told}, func(error) { told = true }
	case "looks":
		w.Store.Git = gitAsks{store: s, id: id}
	case "retries":
		w.Backoff = []time.Duration{time.Millisecond, time.Millisecond}
	case "waits":
		w.Backoff = []time.Duration{time.Hour}
	}
	if strings.HasPrefix(phase, "openat ") || strings.HasPrefix(phase, "mkdirat ") {
		return workOnBadDisk(w, phase)
	}
	ctx := context.Background()
	if phase == "asked" || phase == "waits" {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
	}
	return w.Run(ctx)
}

// killed makes a job, runs it as far as a phase, and kills its worker there.
func killed(t *testing.T, phase string) (job.Store, job.Record) {
	t.Helper()
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	id := job.ID("j-" + phase + fmt.Sprint(time.Now().UnixNano()))
	command := "setsid sleep 3600 & exec sleep 3600"
	if phase == "ended" {
		command = ": >" + s.Path(id, "over")
	}
	r, err := s.Create(job.Record{
		ID: id, Agent: "command", Command: []string{"sh", "-c", command}, Dir: t.TempDir(), Grace: job.Duration(time.Minute), Created: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if phase == "starting" { // its worker waits for a writer of the prompt
		err = syscall.Mkfifo(s.Path(id, "prompt"), 0o600)
	} else {
		err = s.WritePrompt(id, nil)
	}
	program, found := os.Executable()
	out, in, made := os.Pipe()
	if err := errors.Join(err, found, made); err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // it is only read
	env := append(os.Environ(), role+"="+s.Dir+"|"+string(id)+"|"+phase, job.Marker+"="+string(id))
	worker, err := process.Host{}.Start(process.Command{Path: program, Env: env, Stdout: in, Stderr: os.Stderr})
	if err := errors.Join(err, in.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	if phase == "starting" {
		until(t, "the record says starting", func() bool { r, err := s.Read(id); return err == nil && r.Status == job.Starting })
	} else {
		if err := out.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 5)); err != nil {
			t.Fatalf("the worker did not come to the phase %s: %v", phase, err)
		}
	}
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := worker.Force(); err != nil {
		t.Fatal(err)
	}
	if _, ended := process.Status(worker.Wait(limit)); !ended {
		t.Fatal("the worker did not end within a minute after it was killed")
	}
	if r, err = s.Read(id); err != nil {
		t.Fatal(err)
	}
	return s, r
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		clock.Pause(t.Context(), 20*time.Millisecond)
	}
	t.Fatalf("waited a minute, and it is not so that %s", what)
}

func living(t *testing.T, r job.Record) []process.Identity {
	t.Helper()
	all, err := process.Host{}.WithVariable(t.Context(), job.Marker+"="+string(r.ID))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func endAll(t *testing.T, r job.Record) {
	t.Helper()
	for _, id := range living(t, r) {
		_, _ = process.Host{}.Force(id) //nolint:errcheck // it may have ended
	}
}

// The worker of a job is killed in each phase, with and without an intent to end the job. Reconcile
// says what became of it, and cancel ends what is left.
//
// row J24; row J04, of a worker that is killed
func TestWorkerIsKilled(t *testing.T) {
	for _, c := range []struct {
		phase   string
		lives   bool       // the command runs on
		want    job.Status // after a reconcile, without an intent
		outcome job.CancelOutcome
	}{
		{phase: "queued", want: job.Queued, outcome: job.CancelPending},
		{phase: "starting", want: job.Stale, outcome: job.AlreadyDead},
		{phase: "spawned", lives: true, want: job.Starting, outcome: job.Signaled},
		{phase: "running", lives: true, want: job.Running, outcome: job.Signaled},
		{phase: "ended", want: job.Stale, outcome: job.AlreadyDead},
	} {
		t.Run(c.phase, func(t *testing.T) {
			t.Parallel()
			o := job.Observer{Processes: process.Host{}, Now: time.Now()}
			s, r := killed(t, c.phase)
			until(t, fmt.Sprintf("processes of it live: %t", c.lives), func() bool { return len(living(t, r)) > 0 == c.lives })
			if got := o.IsOrphan(t.Context(), r); got != c.lives {
				t.Errorf("it is an orphan: %t, want %t", got, c.lives)
			}
			closed, failed, err := s.ReconcileAll(t.Context(), o)
			if err != nil || len(failed) > 0 || (len(closed) == 1) != c.want.IsTerminal() {
				t.Errorf("reconcile ended %v; failed: %v %v", closed, failed, err)
			}
			after, err := s.Read(r.ID)
			if err != nil || after.Status != c.want || c.want == job.Stale && (after.Reason == "" || after.ErrorCode != job.StaleActiveJob) {
				t.Fatalf("after a reconcile it is %s (%q) %v, want %s with a reason", after.Status, after.Reason, err, c.want)
			}
			again, _, err := s.ReconcileAll(t.Context(), o)
			if now, unread := s.Read(r.ID); errors.Join(err, unread) != nil || len(again) > 0 || now.Revision != after.Revision {
				t.Errorf("a second reconcile wrote %v: %v", again, errors.Join(err, unread))
			}
		})
		t.Run(c.phase+", then cancelled", func(t *testing.T) {
			t.Parallel()
			s, r := killed(t, c.phase)
			until(t, fmt.Sprintf("processes of it live: %t", c.lives), func() bool { return len(living(t, r)) > 0 == c.lives })
			after, outcome, err := job.Canceller{Store: s, Processes: process.Host{}, By: "ann", Now: time.Now}.Cancel(t.Context(), r.ID)
			if err != nil || outcome != c.outcome || after.Status != job.Cancelled {
				t.Errorf("cancel: %s, it is %s: %v; want %s and cancelled", outcome, after.Status, err, c.outcome)
			}
			if left := living(t, r); len(left) > 0 {
				t.Errorf("after the cancel %s lives", process.Words(left))
			}
		})
		if c.lives || c.phase == "queued" {
			continue
		}
		t.Run(c.phase+", and its end was asked for", func(t *testing.T) {
			t.Parallel()
			s, r := killed(t, c.phase)
			until(t, "nothing of it lives", func() bool { return len(living(t, r)) == 0 })
			if _, err := s.Update(t.Context(), r.ID, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "ann", At: noon}) }); err != nil {
				t.Fatal(err)
			}
			_, _, err := s.ReconcileAll(t.Context(), job.Observer{Processes: process.Host{}, Now: time.Now()})
			if after, unread := s.Read(r.ID); errors.Join(err, unread) != nil || after.Status != job.Cancelled {
				t.Errorf("it is %s: %v, want cancelled", after.Status, errors.Join(err, unread))
			}
		})
	}
}
