package job_test

import (
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

// limited is an agent that is refused for its rate as often as the file "refusals" has lines more than "runs".
const limited = `cat >>prompts; echo "${0##*/} $1" >>args; echo >>runs
if [ "$(wc -l <runs)" -le "$(wc -l <refusals)" ]; then
  echo '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 429","session_id":"s-1"}'
  exit 1
fi
echo '{"type":"result","subtype":"success","session_id":"s-1"}'`

// runLimited starts the worker of an agent that is refused so many times, as one of the roles of playWorker.
func runLimited(t *testing.T, phase string, refusals int, timeout time.Duration) (s job.Store, id job.ID, dir string, worker *process.Child) {
	t.Helper()
	id = job.ID("j-" + phase + fmt.Sprint(time.Now().UnixNano()))
	s, dir = job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}, t.TempDir()
	write(t, dir, map[string]string{"refusals": strings.Repeat("\n", refusals)})
	r, err := s.Create(job.Record{
		ID: id, Agent: "claude", Command: []string{"sh", "-c", limited}, Dir: dir, Grace: job.Duration(time.Minute),
		Timeout: job.Duration(timeout), Created: time.Now(),
	})
	program, found := os.Executable()
	if err := errors.Join(err, found, s.WritePrompt(r.ID, []byte("do it\n"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	env := append(os.Environ(), role+"="+s.Dir+"|"+string(r.ID)+"|"+phase, job.Marker+"="+string(r.ID))
	if worker, err = (process.Host{}).Start(process.Command{Path: program, Env: env, Stderr: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	return s, id, dir, worker
}

// has reports what a file of a folder has.
func has(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// An agent whose provider refuses it for its rate goes on with its session, with the same prompt, and each time counts.
func TestAgentIsRetriedForItsRate(t *testing.T) {
	s, id, dir, worker := runLimited(t, "retries", 2, 0)
	workerEnds(t, worker)
	r, err := s.Read(id)
	if err != nil || r.Status != job.Completed || r.Retries != 2 || r.Reason != "" || r.Session != "s-1" {
		t.Errorf("it is %s after %d retries: %s, %v", r.Status, r.Retries, r.Reason, err)
	}
	if args := has(t, dir, "args"); args != "sh \n--resume s-1\n--resume s-1\n" {
		t.Errorf("it was started with %q", args)
	}
	if prompts := has(t, dir, "prompts"); prompts != strings.Repeat("do it\n", 3) {
		t.Errorf("its prompts were %q", prompts)
	}
}

// Its retries come to an end.
func TestAgentIsRetriedSoManyTimes(t *testing.T) {
	s, id, dir, worker := runLimited(t, "retries", 9, 0)
	workerEnds(t, worker)
	r, err := s.Read(id)
	if err != nil || r.Status != job.Failed || r.ErrorCode != job.RateLimited || r.Retries != 2 || !strings.Contains(r.Reason, "the last of 2 retries") {
		t.Errorf("it is %s %s after %d retries: %s, %v", r.Status, r.ErrorCode, r.Retries, r.Reason, err)
	}
	if runs := strings.Count(has(t, dir, "runs"), "\n"); runs != 3 {
		t.Errorf("it ran %d times, want 3", runs)
	}
}

// Nobody waits for a retry beyond the time of the job.
func TestAgentIsNotRetriedBeyondItsTime(t *testing.T) {
	s, id, dir, worker := runLimited(t, "waits", 1, time.Minute)
	workerEnds(t, worker)
	r, err := s.Read(id)
	if err != nil || r.ErrorCode != job.RateLimited || r.Retries != 0 || strings.Count(has(t, dir, "runs"), "\n") != 1 {
		t.Errorf("it is %s %s after %d retries, %v", r.Status, r.ErrorCode, r.Retries, err)
	}
}

// While it waits the record says so, and it can be cancelled; a worker that is killed there leaves nothing that runs for ever.
func TestCancelWhileAnAgentWaitsForItsRetry(t *testing.T) {
	for _, how := range []string{"cancel", "kill"} {
		t.Run(how, func(t *testing.T) {
			s, id, dir, worker := runLimited(t, "waits", 1, 0)
			var r job.Record
			until(t, "the record says that it waits", func() (waits bool) {
				r, _ = s.Read(id) //nolint:errcheck // it is read again
				return strings.Contains(r.Reason, "for its rate: retry 1 of 1 at ")
			})
			observer := job.Observer{Processes: process.Host{}, Now: time.Now()}
			want := job.Cancelled
			if how == "kill" {
				want = job.Stale
				if err := worker.Force(); err != nil {
					t.Fatal(err)
				}
				until(t, "the worker is gone", func() bool { return observer.Derive(t.Context(), r).Status.IsTerminal() })
				if _, err := s.Reconcile(t.Context(), r, observer); err != nil {
					t.Error(err)
				}
			} else if r, outcome, err := (job.Canceller{Store: s, Processes: process.Host{}, By: "test", Now: time.Now}).Cancel(t.Context(), id); err != nil || outcome != job.Signaled {
				t.Errorf("cancelled: %s, it is %s, %v", outcome, r.Status, err)
			}
			if r, err := s.Read(id); err != nil || r.Status != want || strings.Count(has(t, dir, "runs"), "\n") != 1 {
				t.Errorf("it is %s, want %s: %v", r.Status, want, err)
			}
		})
	}
}

// A worker that is asked to end while it waits ends the job as cancelled, also if nobody could record that.
func TestWorkerIsAskedWhileItWaitsForARetry(t *testing.T) {
	s, id, dir, worker := runLimited(t, "waits", 1, 0)
	var r job.Record
	until(t, "the record says that it waits", func() bool {
		r, _ = s.Read(id) //nolint:errcheck // it is read again
		return strings.Contains(r.Reason, "for its rate: retry 1 of 1 at ")
	})
	if err := (process.Host{}).Request(*r.Worker); err != nil {
		t.Fatal(err)
	}
	workerEnds(t, worker)
	if r, err := s.Read(id); err != nil || r.Status != job.Cancelled || !strings.HasPrefix(r.Reason, "ended on request") || strings.Count(has(t, dir, "runs"), "\n") != 1 {
		t.Errorf("it is %s: %s, %v; want cancelled, ended on request", r.Status, r.Reason, err)
	}
}
