package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/gitx"
	"vmctl/internal/lockfile"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/job"
)

// gitHere runs git on this host.
type gitHere struct{}

func (gitHere) Run(ctx context.Context, c gitx.Command) (gitx.Output, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Stdin, c.Stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return gitx.Output{Status: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}, nil
	}
	return gitx.Output{}, err
}

// start makes a job of a shell script in a folder, and starts a worker of it, which is ended with the test.
func start(t *testing.T, s job.Store, id job.ID, dir, script string, prepare func()) *process.Child {
	t.Helper()
	return startAs(t, s, id, dir, script, "", prepare)
}

// startAs is start with a worker in a phase.
func startAs(t *testing.T, s job.Store, id job.ID, dir, script, phase string, prepare func()) *process.Child {
	t.Helper()
	r, err := s.Create(job.Record{
		ID: id, Agent: job.Plain, Command: []string{"sh", "-c", script}, Dir: dir, Grace: job.Duration(time.Minute), Created: time.Now(),
	})
	if err := errors.Join(err, s.WritePrompt(id, nil)); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare()
	}
	t.Cleanup(func() { endAll(t, r) })
	return background(t, s, id, phase)
}

// background starts a worker of a job in a phase.
func background(t *testing.T, s job.Store, id job.ID, phase string) *process.Child {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	marker := job.Marker
	if r, err := s.Read(id); err == nil && r.Inside != "" { // what is in the VM is on this host, too
		marker = job.GuestMarker
	}
	env := append(os.Environ(), role+"="+s.Dir+"|"+string(id)+"|"+phase, marker+"="+string(id))
	worker, err := process.Host{}.Start(process.Command{Path: program, Env: env, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

// workerEnds waits for a worker, which has to end with status 0.
func workerEnds(t *testing.T, worker *process.Child) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := worker.Wait(limit); err != nil {
		if status, ok := process.Status(err); !ok || status != 0 {
			t.Errorf("the worker: %v", err)
		}
	}
}

// row J03
func TestOutputThatCannotBeKept(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	workerEnds(t, start(t, s, "j", t.TempDir(), "echo a; echo b >&2", func() {
		if err := os.Mkdir(s.Path("j", "stdout"), 0o700); err != nil {
			t.Error(err)
		}
	}))
	r, err := s.Read("j")
	if err != nil || r.Status != job.Completed || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "its stdout is not kept: ") {
		t.Errorf("it is %s with the warnings %q: %v; want completed, and one about stdout", r.Status, r.Warnings, err)
	}
	if text, err := os.ReadFile(s.Path("j", "stderr")); err != nil || string(text) != "b\n" {
		t.Errorf("stderr is %q: %v", text, err)
	}
}

// Whoever reads that a job has ended may remove its folder at once: nothing is written after that.
//
// row J64, of jobs on this host
func TestTheTerminalStatusIsTheLastWrite(t *testing.T) {
	runs := 25
	if testing.Short() {
		runs = 2
	}
	for group := range 4 {
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			for run := range runs {
				removeWhenEnded(t, s, job.ID(fmt.Sprintf("j-last-%d-%d", group, run)))
			}
		})
	}
}

// removeWhenEnded runs a job, and removes its folder as soon as its record says that it has ended.
func removeWhenEnded(t *testing.T, s job.Store, id job.ID) {
	t.Helper()
	worker := start(t, s, id, s.Dir, "echo a", nil)
	var r job.Record
	until(t, "the job has ended", func() bool {
		var err error
		if r, err = s.Read(id); err != nil {
			t.Fatal(err)
		}
		return r.Status.IsTerminal()
	})
	if err := os.RemoveAll(s.Path(id, "")); err != nil {
		t.Error(err)
	}
	workerEnds(t, worker)
	if _, err := os.Lstat(s.Path(id, "")); !errors.Is(err, fs.ErrNotExist) || r.Status != job.Completed {
		t.Fatalf("the folder of a job that was %s is there again: %v", r.Status, err)
	}
}

// The same of a job in a VM: its worker still removes the folder of the job there.
//
// row J64, of jobs in a VM
func TestTheTerminalStatusOfAJobInAVMIsTheLastWrite(t *testing.T) {
	runs := 25
	if testing.Short() {
		runs = 1
	}
	for group := range 4 {
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			for run := range runs {
				removeInsideWhenEnded(t, s, job.ID(fmt.Sprintf("j-last-vm-%d-%d", group, run)))
			}
		})
	}
}

// removeInsideWhenEnded is removeWhenEnded of a job in a VM.
func removeInsideWhenEnded(t *testing.T, s job.Store, id job.ID) {
	t.Helper()
	home := t.TempDir()
	r, err := s.Create(job.Record{
		ID: id, Agent: job.Plain, Command: []string{"sh", "-c", "echo a"}, Dir: home, Grace: job.Duration(time.Minute), Created: time.Now(),
		Inside: "vm.dev", Workspace: "workspace.w",
	})
	if err := errors.Join(err, s.WritePrompt(id, nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	w := job.GuestWorker{Store: s, ID: id, Guest: onHost(home), Now: time.Now, Ready: func(error) {}}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context(), func() error { return nil }) }()
	for !r.Status.IsTerminal() { // without a pause: it is to be removed while its worker still syncs the folder
		if r, err = s.Read(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(s.Path(id, "")); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the worker: %v", err)
	}
	for _, gone := range []string{s.Path(id, ""), home + "/.vmctl"} {
		if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) || r.Status != job.Completed {
			t.Fatalf("%s of a job that was %s is there: %v", gone, r.Status, err)
		}
	}
}

// seesLeft is a guest that notes whether a look at a job has shown what its command left behind.
type seesLeft struct {
	providers.Guest
	left *atomic.Bool
}

func (g seesLeft) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	o, err := g.Guest.Run(ctx, c)
	if out, is := c.Stdout.(*bytes.Buffer); is && strings.HasPrefix(out.String(), "runs left ") {
		g.left.Store(true)
	}
	return o, err
}

// What the command of a job in a VM left behind, and may not be killed, does not make the job late: its time is that of the command. Its
// record says that it resists until it has ended.
//
// row J60, of a job in a VM whose command has ended
func TestWhatIsLeftInAVMIsNotLate(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	home, id := t.TempDir(), job.ID("j-left-vm")
	hold := filepath.Join(home, "hold")
	r, err := s.Create(job.Record{
		ID: id, Agent: job.Plain, Dir: home, Grace: job.Duration(time.Second), Timeout: job.Duration(time.Hour), IdleTimeout: job.Duration(time.Hour),
		Created: time.Now(), Inside: "vm.dev", Workspace: "workspace.w", Unforced: true,
		Command: []string{"sh", "-c", "setsid sh -c 'trap \"\" TERM; read line <" + hold + "' </dev/null >/dev/null 2>&1 & exit 0"},
	})
	if err := errors.Join(err, s.WritePrompt(id, nil), syscall.Mkfifo(hold, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, r) })
	in := seesLeft{onHost(home), new(atomic.Bool)}
	now := func() time.Time { // two hours pass once a look has shown that the command has ended
		if in.left.Load() {
			return time.Now().Add(2 * time.Hour)
		}
		return time.Now()
	}
	w := job.GuestWorker{Store: s, ID: id, Guest: in, Now: now, Ready: func(error) {}}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(t.Context(), func() error { return nil }) }()
	until(t, "the record says that the job resists", func() bool {
		if r, err = s.Read(id); err != nil {
			t.Fatal(err)
		}
		return r.Resists
	})
	if r.Status != job.Running || !strings.HasPrefix(r.Reason, "its command has ended, and what it left behind was asked to end") {
		t.Errorf("it is %s: %s", r.Status, r.Reason)
	}
	if err := os.WriteFile(hold, []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r, err = s.Read(id); err != nil || r.Status != job.Completed || r.Resists || len(r.Leftovers) == 0 {
		t.Errorf("it is %s, %s: %s, left %q: %v", r.Status, r.ErrorCode, r.Reason, r.Leftovers, err)
	}
}

// inRepository makes a repository with a commit of three files, and some dirt.
func inRepository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	git := gitx.Git{Runner: gitHere{}, Dir: dir}
	write(t, dir, map[string]string{".gitignore": "ignored\n", "kept": "1\n", "edited": "1\n", "gone": "1\n", "dirty": "1\n", "redone": "1\n"})
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "one"},
	} {
		if _, err := git.Output(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, map[string]string{"dirty": "2\n", "untracked": "1\n", "redone": "2\n"})
	return dir
}

// What a job changes is in its record: committed or not, also in files that differed before.
//
// row J59, of jobs on this host
func TestWhatAJobChanged(t *testing.T) {
	const commit = "git -c user.name=Ann -c user.email=ann@example.org commit -q -m two"
	for i, c := range []struct {
		name, script string
		want         []string
	}{
		{name: "nothing", script: "cat kept; cat dirty; echo x >ignored", want: []string{}},
		{name: "edit, delete, make", script: "echo 2 >edited; rm gone; echo 1 >'new file'; mkdir -p a/b; echo 1 >a/b/c", want: []string{"a/b/c", "edited", "gone", "new file"}},
		{name: "what was dirty", script: "echo 33 >dirty; rm untracked", want: []string{"dirty", "untracked"}},
		{name: "what was dirty is as committed", script: "echo 1 >redone", want: []string{"redone"}},
		{name: "a commit", script: "echo 2 >edited; git add edited; " + commit, want: []string{"edited"}},
		{name: "a name that hurts", script: "echo 1 >\"$(printf 'a\\nb \"c')\"", want: []string{"a\nb \"c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
			id := job.ID(fmt.Sprintf("j-changed-%d", i))
			workerEnds(t, start(t, s, id, inRepository(t), c.script, nil))
			r, err := s.Read(id)
			if err != nil || r.Status != job.Completed || len(r.Warnings) > 0 {
				t.Errorf("it is %s (%s) with the warnings %q: %v", r.Status, r.Reason, r.Warnings, err)
			}
			if diff := cmp.Diff(c.want, r.Changed); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("git fails", func(t *testing.T) {
		t.Parallel()
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		workerEnds(t, start(t, s, "j-git-fails", inRepository(t), "echo x >.git/index", nil))
		r, err := s.Read("j-git-fails")
		if err != nil || r.Status != job.Completed || r.Changed != nil || len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "what it changed in its folder is not known: ") {
			t.Errorf("it is %s, changed %q, with the warnings %q: %v", r.Status, r.Changed, r.Warnings, err)
		}
	})
	t.Run("no repository", func(t *testing.T) {
		t.Parallel()
		s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
		workerEnds(t, start(t, s, "j-no-repository", t.TempDir(), "echo x >y", nil))
		if r, err := s.Read("j-no-repository"); err != nil || r.Status != job.Completed || r.Changed != nil || len(r.Warnings) > 0 {
			t.Errorf("it is %s, changed %q, with the warnings %q: %v", r.Status, r.Changed, r.Warnings, err)
		}
	})
}

// gitAsks is a git during which the end of the job is asked for. It notes how long it may take.
type gitAsks struct {
	store job.Store
	id    job.ID
}

func (g gitAsks) Run(ctx context.Context, _ gitx.Command) (gitx.Output, error) {
	until, _ := ctx.Deadline()
	_, err := g.store.Update(ctx, g.id, func(r *job.Record) error { return job.Ask(r, job.Cancel{By: "test", At: time.Now()}) })
	limit := fmt.Sprint(until.After(time.Now()) && time.Until(until) < 10*time.Second)
	err = errors.Join(err, os.WriteFile(g.store.Path(g.id, "short"), []byte(limit), 0o600))
	return gitx.Output{}, errors.Join(err, errors.New("git does not answer"))
}

// The look at the folder before a run is short: who starts the job waits for it. A job whose end is asked for meanwhile does
// not start.
func TestEndIsAskedForDuringTheLook(t *testing.T) {
	s := job.Store{Dir: t.TempDir(), Owner: lockfile.Owner{PID: os.Getpid()}}
	dir := t.TempDir()
	_, err := s.Create(job.Record{ID: "j-looks", Agent: job.Plain, Command: []string{"sh", "-c", ": >ran"}, Dir: dir, Created: time.Now()})
	if err := errors.Join(err, s.WritePrompt("j-looks", nil)); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker, err := process.Host{}.Start(process.Command{Path: program, Env: append(os.Environ(), role+"="+s.Dir+"|j-looks|looks"), Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	workerEnds(t, worker)
	r, err := s.Read("j-looks")
	if err != nil || r.Status != job.Cancelled || !r.Started.IsZero() || r.Reason != "cancelled by test" {
		t.Errorf("it is %s: %s, started %s, %v; want cancelled, and never started", r.Status, r.Reason, r.Started, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ran")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
	if short := has(t, s.Path("j-looks", ""), "short"); short != "true" {
		t.Errorf("the look ends well before who started the job gives up: %s", short)
	}
}
