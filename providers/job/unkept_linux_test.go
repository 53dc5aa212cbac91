package job_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/job"
)

// succeeds is an agent that succeeds.
const succeeds = `echo '{"type":"system","subtype":"init","session_id":"s-1"}'; echo '{"type":"result","subtype":"success","session_id":"s-1"}'`

// prepared makes a job whose standard output cannot be kept. Its ID begins with that of the record.
func prepared(t *testing.T, r job.Record) (job.Store, job.ID) {
	t.Helper()
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	r.ID += job.ID(fmt.Sprint(time.Now().UnixNano()))
	r.Dir, r.Grace, r.Created = t.TempDir(), job.Duration(time.Minute), time.Now()
	r, err := s.Create(r)
	if err := errors.Join(err, s.WritePrompt(r.ID, nil), os.Mkdir(s.Path(r.ID, "stdout"), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	return s, r.ID
}

// workAs runs a worker as a role of playWorker to its end.
func workAs(t *testing.T, s job.Store, id job.ID, phase string) job.Record {
	t.Helper()
	workerEnds(t, background(t, s, id, phase))
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
		s, id := prepared(t, job.Record{ID: "j-unkept", Agent: "claude", Command: []string{"sh", "-c", script}})
		if r := workAs(t, s, id, ""); r.Status != want || want == job.Completed && r.Session != "s-1" || isKept(r) {
			t.Errorf("%s: it is %s: %s, session %q, warnings %q; want %s", script, r.Status, r.Reason, r.Session, r.Warnings, want)
		}
	}
}

// A retry counts by an output that is not kept, too.
func TestRetryOfAnAgentWhoseOutputIsNotKept(t *testing.T) {
	s, id := prepared(t, job.Record{ID: "j-unkept-retry", Agent: "claude", Command: []string{"sh", "-c", limited}})
	r, err := s.Read(id)
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
	s, id := prepared(t, job.Record{ID: "j-ticks", Agent: job.Plain, Command: []string{"sh", "-c", script}, IdleTimeout: job.Duration(3*time.Hour + time.Minute)})
	write(t, s.Path(id, ""), map[string]string{"looked": ""})
	if r := workAs(t, s, id, "ticks"); r.Status != job.Completed || isKept(r) {
		t.Errorf("it is %s: %s %s, warnings %q", r.Status, r.ErrorCode, r.Reason, r.Warnings)
	}
}

// The same of a job in a guest. There the output stays.
func TestOutputOfAGuestThatIsNotKept(t *testing.T) {
	s, id := prepared(t, job.Record{ID: "j-unkept-guest", Agent: "claude", Inside: "vm.dev", Command: []string{"sh", "-c", succeeds}})
	home := t.TempDir()
	r := workInside(t, s, id, onHost(home))
	if r.Status != job.Completed || r.Session != "s-1" || isKept(r) || !strings.HasSuffix(r.Warnings[0], "whole in ~/.vmctl/jobs/"+string(id)+" in vm.dev") {
		t.Errorf("it is %s: %s, session %q, warnings %q", r.Status, r.Reason, r.Session, r.Warnings)
	}
	if out := has(t, home, ".vmctl/jobs/"+string(id)+"/stdout"); strings.Count(out, "\n") != 2 {
		t.Errorf("its output in the guest: %q", out)
	}
}

// onHost is a guest on this host.
func onHost(home string) providers.Guest {
	return guest.OnHost(home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home})
}

// workInside runs the worker of a job in a guest to its end.
func workInside(t *testing.T, s job.Store, id job.ID, in providers.Guest) job.Record {
	t.Helper()
	ready := make(chan error, 1)
	w := job.GuestWorker{Store: s, ID: id, Guest: in, Now: time.Now, Ready: func(err error) { ready <- err }}
	err := w.Run(t.Context(), func() error { return nil })
	r, unread := s.Read(id)
	if err := errors.Join(err, <-ready, unread); err != nil {
		t.Fatal(err)
	}
	return r
}

// roomLater is a guest of which an output can be kept once one was read, and could not be.
type roomLater struct {
	providers.Guest
	makeRoom func()
	wasRead  *bool
}

func (g roomLater) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	if *g.wasRead {
		g.makeRoom()
	}
	*g.wasRead = *g.wasRead || slices.Contains(c.Args, "stdout")
	return g.Guest.Run(ctx, c)
}

// An output that could not be kept for a while is whole in the end, and does not stay in the guest.
func TestOutputOfAGuestThatIsKeptLater(t *testing.T) {
	const script = "echo a; until [ -e room ]; do sleep 0.02; done; echo b"
	s, id := prepared(t, job.Record{ID: "j-kept-later", Agent: job.Plain, Inside: "vm.dev", Command: []string{"sh", "-c", script}})
	r, err := s.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	r = workInside(t, s, id, roomLater{Guest: onHost(home), wasRead: new(bool), makeRoom: sync.OnceFunc(func() {
		if err := os.Remove(s.Path(id, "stdout")); err != nil {
			t.Error(err)
		}
		write(t, r.Dir, map[string]string{"room": ""})
	})})
	if r.Status != job.Completed || len(r.Warnings) > 0 {
		t.Errorf("it is %s: %s, warnings %q", r.Status, r.Reason, r.Warnings)
	}
	if out := has(t, s.Path(id, ""), "stdout"); out != "a\nb\n" {
		t.Errorf("its output is %q", out)
	}
	if _, err := os.Lstat(home + "/.vmctl"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder in the guest: %v", err)
	}
}
