package job_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/guest"
	"vmctl/providers/job"
)

// succeeds is an agent that succeeds.
const succeeds = `echo '{"type":"system","subtype":"init","session_id":"s-1"}'; echo '{"type":"result","subtype":"success","session_id":"s-1"}'`

// prepared makes a job whose standard output cannot be kept.
func prepared(t *testing.T, r job.Record) job.Store {
	t.Helper()
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r.Dir, r.Grace, r.Created = t.TempDir(), job.Duration(time.Minute), time.Now()
	r, err := s.Create(r)
	if err := errors.Join(err, s.WritePrompt(r.ID, nil), os.Mkdir(s.Path(r.ID, "stdout"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	return s
}

// workAs runs a worker as a role of playWorker to its end.
func workAs(t *testing.T, s job.Store, id job.ID, phase string) job.Record {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), role+"="+s.Dir+"|"+string(id)+"|"+phase, job.Marker+"="+string(id))
	worker, err := process.Host{}.Start(process.Command{Path: program, Env: env, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	workerEnds(t, worker)
	r, err := s.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func isKept(r job.Record) bool {
	return len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "its stdout is not kept: ")
}

// An agent succeeds as its output says, also if that cannot be kept.
func TestResultOfAnAgentWhoseOutputIsNotKept(t *testing.T) {
	for script, want := range map[string]job.Status{succeeds: job.Completed, "echo nothing": job.Failed} {
		s := prepared(t, job.Record{ID: "j-unkept", Agent: "claude", Command: []string{"sh", "-c", script}})
		if r := workAs(t, s, "j-unkept", ""); r.Status != want || want == job.Completed && r.Session != "s-1" || isKept(r) {
			t.Errorf("%s: it is %s: %s, session %q, warnings %q; want %s", script, r.Status, r.Reason, r.Session, r.Warnings, want)
		}
	}
}

// A retry counts by an output that is not kept, too.
func TestRetryOfAnAgentWhoseOutputIsNotKept(t *testing.T) {
	s := prepared(t, job.Record{ID: "j-unkept-retry", Agent: "claude", Command: []string{"sh", "-c", limited}})
	r, err := s.Read("j-unkept-retry")
	if err != nil {
		t.Fatal(err)
	}
	write(t, r.Dir, map[string]string{"refusals": "\n"})
	if r = workAs(t, s, r.ID, "retries"); r.Status != job.Completed || r.Retries != 1 {
		t.Errorf("it is %s after %d retries: %s", r.Status, r.Retries, r.Reason)
	}
}

// A command that goes on writing is not idle, also if its output cannot be kept. Its worker's clock goes on by an hour for each
// line, and the command waits until the worker has looked.
func TestOutputThatIsNotKeptCounts(t *testing.T) {
	const script = `for i in 1 2 3 4 5 6 7 8; do
  echo line
  printf x >>"$TMPDIR/../count"
  while [ "$(wc -c <"$TMPDIR/../looked")" -lt "$i" ]; do sleep 0.02; done
done`
	s := prepared(t, job.Record{ID: "j-ticks", Agent: job.Plain, Command: []string{"sh", "-c", script}, IdleTimeout: job.Duration(3*time.Hour + time.Minute)})
	if r := workAs(t, s, "j-ticks", "ticks"); r.Status != job.Completed || isKept(r) {
		t.Errorf("it is %s: %s %s, warnings %q", r.Status, r.ErrorCode, r.Reason, r.Warnings)
	}
}

// The same of a job in a guest.
func TestOutputOfAGuestThatIsNotKept(t *testing.T) {
	s := prepared(t, job.Record{ID: "j-unkept-guest", Agent: "claude", Inside: "vm.dev", Command: []string{"sh", "-c", succeeds}})
	ready := make(chan error, 1)
	home := t.TempDir()
	w := job.GuestWorker{
		Store: s, ID: "j-unkept-guest", Guest: guest.OnHost(home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}), Now: time.Now,
		Ready: func(err error) { ready <- err },
	}
	err := w.Run(t.Context(), func() error { return nil })
	if err := errors.Join(err, <-ready); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Read("j-unkept-guest"); err != nil || r.Status != job.Completed || r.Session != "s-1" || isKept(r) {
		t.Errorf("it is %s: %s, session %q, warnings %q, %v", r.Status, r.Reason, r.Session, r.Warnings, err)
	}
}
