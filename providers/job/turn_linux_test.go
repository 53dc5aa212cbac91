package job_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers/job"
)

// line is a block's jobs that take turns: each runs until its file is there.
type line struct {
	store   job.Store
	dir     string
	workers map[job.ID]*process.Child
}

func (l line) observer() job.Observer {
	return job.Observer{Processes: process.Host{}, Now: time.Now()}
}

// join makes a job of one key of the block, and starts its worker.
func (l line) join(t *testing.T, key string, most int) {
	t.Helper()
	id := job.ID("j-" + key)
	r, err := l.store.CreateOnly(t.Context(), job.Record{
		ID: id, Agent: job.Plain, Command: []string{"sh", "-c", "while [ ! -e " + key + " ]; do sleep 0.02; done"}, Dir: l.dir,
		Grace: job.Duration(time.Minute), Created: time.Now(), Block: `job.part["` + key + `"]`, MaxParallel: most,
	}, l.observer())
	program, found := os.Executable()
	if err := errors.Join(err, found, l.store.WritePrompt(id, []byte("a prompt"))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	env := append(os.Environ(), role+"="+l.store.Dir+"|"+string(id)+"|asked", job.Marker+"="+string(id))
	if l.workers[id], err = (process.Host{}).Start(process.Command{Path: program, Env: env}); err != nil {
		t.Fatal(err)
	}
}

func (l line) comesTo(t *testing.T, key string, s job.Status) {
	t.Helper()
	until(t, key+" is "+string(s), func() bool { return l.is(t, key).Status == s })
}

func (l line) is(t *testing.T, key string) job.Record {
	t.Helper()
	r, err := l.store.Read(job.ID("j-" + key))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l line) waits(t *testing.T, key string) {
	t.Helper()
	until(t, key+" waits for its turn", func() bool { return l.is(t, key).Worker != nil })
	if r := l.is(t, key); r.Status != job.Queued || r.Reason != "it waits for its turn: of job.part at most 2 run at once" {
		t.Errorf("%s is %s: %s", key, r.Status, r.Reason)
	}
}

func (l line) release(t *testing.T, key string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, key), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.comesTo(t, key, job.Completed)
}

func (l line) workerEnds(t *testing.T, key string) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, ended := process.Status(l.workers[job.ID("j-"+key)].Wait(limit)); !ended {
		t.Errorf("the worker of %s did not end within a minute", key)
	}
}

// Of the jobs of a block at most two run at once. The oldest that waits is next; one that was cancelled, or whose worker
// was killed, is in nobody's way.
func TestJobsOfABlockTakeTurns(t *testing.T) {
	l := line{store: job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}, dir: t.TempDir(), workers: map[job.ID]*process.Child{}}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		l.join(t, key, 2)
		if key < "c" {
			l.comesTo(t, key, job.Running)
		} else {
			l.waits(t, key)
		}
	}
	if o := l.observer(); o.IsOrphan(t.Context(), l.is(t, "c")) || o.Derive(t.Context(), l.is(t, "c")).Reason == "" {
		t.Error("a job that waits counts as one without a worker, or nobody says why it waits")
	}

	if err := l.workers["j-c"].Force(); err != nil {
		t.Fatal(err)
	}
	l.workerEnds(t, "c")
	if d := l.observer().Derive(t.Context(), l.is(t, "c")); d.Status != job.Stale || !strings.Contains(d.Reason, "had not begun") {
		t.Errorf("one whose worker was killed while it waited is %s: %s", d.Status, d.Reason)
	}

	canceller := job.Canceller{Store: l.store, Processes: process.Host{}, By: "test", Now: time.Now}
	if r, outcome, err := canceller.Cancel(t.Context(), "j-d"); err != nil || outcome != job.CancelPending || r.Status != job.Cancelled {
		t.Errorf("cancelled while it waited: %s, %s, %v", outcome, r.Status, err)
	}
	l.workerEnds(t, "d")
	if _, err := os.Stat(l.store.Path("j-d", "prompt")); !errors.Is(err, fs.ErrNotExist) || !l.is(t, "d").Started.IsZero() {
		t.Errorf("it has run, or left its prompt: %v", err)
	}

	if err := (process.Host{}).Request(*l.is(t, "f").Worker); err != nil {
		t.Fatal(err)
	}
	l.comesTo(t, "f", job.Cancelled)
	if r := l.is(t, "f"); r.Reason != "cancelled by a signal to its worker before it began" {
		t.Errorf("asked by a signal while it waited: %s", r.Reason)
	}

	l.join(t, "g", 2)
	l.waits(t, "g")
	l.release(t, "a")
	l.comesTo(t, "e", job.Running)
	if r := l.is(t, "g"); r.Status != job.Queued {
		t.Errorf("g has begun before b or e has ended: it is %s", r.Status)
	}
	l.release(t, "e")
	l.comesTo(t, "g", job.Running)
	l.release(t, "g")
	l.release(t, "b")
}

// A job ahead whose record cannot be read may run: the next one waits, and says why.
func TestAJobAheadThatCannotBeReadCounts(t *testing.T) {
	l := line{store: job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}, dir: t.TempDir(), workers: map[job.ID]*process.Child{}}
	l.join(t, "a", 1)
	l.comesTo(t, "a", job.Running)
	l.join(t, "b", 1)
	path := l.store.Path("j-a", "record.json")
	good, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(path, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	until(t, "b says that a cannot be read", func() bool { return strings.Contains(l.is(t, "b").Reason, "read job j-a") })
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	l.release(t, "a")
	l.comesTo(t, "b", job.Running)
	l.release(t, "b")
}
