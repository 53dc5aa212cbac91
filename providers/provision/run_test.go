//go:build unix

package provision_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/provision"
)

// home is the home folder of a guest on this host, with the runs of a script.
type home struct {
	provision.Runs
	t     *testing.T
	guest providers.Guest
	dir   string
}

// newHome makes a home whose commands have these variables.
func newHome(t *testing.T, env ...string) *home {
	t.Helper()
	dir := t.TempDir()
	g := guest.InFolder(dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...))
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return &home{Runs: provision.In(g, "tools"), t: t, guest: g, dir: dir}
}

// start starts a run, and demands that it is there afterwards.
func (h *home) start(run, text string, env ...string) (ended bool) {
	h.t.Helper()
	is, err := h.Start(h.t.Context(), run, rand.Text(), "digest", text, env...)
	if err != nil || is.Run != run {
		h.t.Fatalf("started %s: %+v, %v", run, is, err)
	}
	return is.Ended
}

// follow returns the status and the log of a run once it has ended.
func (h *home) follow(run string) (status int, log string) {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "log")
	status, err := h.Follow(h.t.Context(), run, path)
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	return status, string(text)
}

func (h *home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir, ".vmctl", "provision"}, parts...)...)
}

func (h *home) has(parts ...string) bool {
	_, err := os.Lstat(h.path(parts...))
	return err == nil
}

// pipe makes a named pipe in the home.
func (h *home) pipe(name string) {
	h.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(h.dir, name), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// receive returns what a script writes into the pipe begun, once it does.
func (h *home) receive() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "begun"))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// send writes a line into the pipe go, once a script reads it.
func (h *home) send() {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(h.dir, "go"), []byte("on\n"), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// leader returns the process that runs the script of a run.
func (h *home) leader(run string) process.Identity {
	h.t.Helper()
	text, err := os.ReadFile(h.path("tools."+run, "claim"))
	if err != nil {
		h.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		h.t.Fatal(err)
	}
	id, err := process.Host{}.Capture(h.t.Context(), pid)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// A run has its status and its log, and the environment of its start. Once it has ended nothing of the script and of
// the environment is in a file.
func TestRun(t *testing.T) {
	h := newHome(t)
	if ended := h.start("once", "echo \"$WORD\"; pwd; exit 3\n", "WORD=a secret"); ended {
		t.Error("it has ended before it began")
	}
	if status, log := h.follow("once"); status != 3 || log != "a secret\n"+h.dir+"\n" {
		t.Errorf("status %d, log %q", status, log)
	}
	if h.has("tools.once", "script") {
		t.Error("its script stayed")
	}
	if err := os.Remove(h.path("tools.once", "log")); err != nil { // which has what the script printed
		t.Fatal(err)
	}
	err := filepath.WalkDir(h.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s has it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A script has the umask of the user, and not that of the files of its run.
func TestUmask(t *testing.T) {
	h := newHome(t)
	h.start("once", "umask\n")
	want, err := exec.Command("sh", "-c", "umask").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, log := h.follow("once"); log != string(want) {
		t.Errorf("umask %q, want %q", log, want)
	}
	if info, err := os.Stat(h.path("tools.once", "log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log has the mode %v, %v", info.Mode(), err)
	}
}

// A run that has ended well is not run again; one that has failed is.
func TestRunsAgainAfterFailure(t *testing.T) {
	h := newHome(t)
	const text = "echo run >>ran; [ -e well ]\n"
	for _, want := range []bool{false, false} { // it fails each time
		if ended := h.start("once", text); ended != want {
			t.Errorf("ended is %v", ended)
		}
		if status, _ := h.follow("once"); status != 1 {
			t.Errorf("status %d", status)
		}
	}
	if err := os.WriteFile(filepath.Join(h.dir, "well"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.start("once", text)
	if status, _ := h.follow("once"); status != 0 {
		t.Errorf("status %d", status)
	}
	if !h.start("once", text) {
		t.Error("it ended well, and was started again")
	}
	if ran, err := os.ReadFile(filepath.Join(h.dir, "ran")); err != nil || string(ran) != "run\nrun\nrun\n" {
		t.Errorf("it ran %q, %v", ran, err)
	}
}

// While a run goes on, another start starts nothing, also of another script of that name: it learns which run goes on.
func TestOneRunAtATime(t *testing.T) {
	h := newHome(t)
	h.pipe("begun")
	h.pipe("go")
	h.start("change-a", "echo >begun; read -r x <go; echo a\n")
	h.receive()
	for _, run := range []string{"change-a", "change-b"} {
		is, err := h.Start(t.Context(), run, "another step", "another digest", "echo another\n")
		is.Ran = 0
		if want := (provision.Found{Run: "change-a", Digest: "digest", Limit: time.Hour}); err != nil || is != want {
			t.Errorf("started %s beside it: %+v, %v; want %+v", run, is, err, want)
		}
	}
	h.send()
	if status, log := h.follow("change-a"); status != 0 || log != "a\n" {
		t.Errorf("status %d, log %q", status, log)
	}
	h.start("change-b", "echo b\n")
	if status, log := h.follow("change-b"); status != 0 || log != "b\n" {
		t.Errorf("status %d, log %q of the next", status, log)
	}
	if h.has("tools.change-a") {
		t.Error("the files of the run before stayed")
	}
}

// The end of a run takes its processes. A run that was killed, by whomever, is lost, and is started again.
func TestEnd(t *testing.T) {
	h := newHome(t)
	h.pipe("begun")
	const text = "sleep 600 & echo $! >begun; wait\n"
	h.start("once", text)
	pid, err := strconv.Atoi(h.receive())
	if err != nil {
		t.Fatal(err)
	}
	child, err := process.Host{}.Capture(t.Context(), pid)
	if err != nil {
		t.Fatal(err)
	}
	leader := h.leader("once")
	if err := h.End(t.Context(), "once"); err != nil {
		t.Fatal(err)
	}
	if err := (process.Host{}).Wait(t.Context(), child, leader); err != nil {
		t.Error(err)
	}
	if status, _ := h.follow("once"); status == 0 {
		t.Error("it counts as done")
	}
	if ended := h.start("once", text); ended {
		t.Error("it counts as ended well")
	}
	h.receive()
	leader = h.leader("once")
	if err := syscall.Kill(-leader.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := (process.Host{}).Wait(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	if status, _ := h.follow("once"); status != provision.Lost {
		t.Errorf("status %d of a run that was killed", status)
	}
}

// A script that is asked to end has the time to do so. It does not count as done, whatever its status is.
func TestEndWaits(t *testing.T) {
	h := newHome(t)
	h.pipe("begun")
	const text = "trap 'sleep 0.5; echo bye >said; exit 0' TERM; sleep 600 & echo on >begun; wait\n"
	h.start("once", text)
	h.receive()
	if err := h.End(t.Context(), "once"); err != nil {
		t.Fatal(err)
	}
	if said, err := os.ReadFile(filepath.Join(h.dir, "said")); err != nil || string(said) != "bye\n" {
		t.Errorf("it said %q at its end: %v", said, err)
	}
	if status, _ := h.follow("once"); status == 0 {
		t.Error("it counts as done")
	}
}

// The age of a run does not follow the clock of the guest, where the guest has another measure.
func TestAge(t *testing.T) {
	if _, err := os.Stat("/proc/uptime"); err != nil {
		t.Skip("there is no other measure here")
	}
	tools := t.TempDir()
	const clock = "#!/bin/sh\ncat \"$HOME/clock\" 2>/dev/null || echo 1000\n"
	if err := os.WriteFile(filepath.Join(tools, "date"), []byte(clock), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHome(t, "PATH="+tools+":"+os.Getenv("PATH"))
	h.pipe("begun")
	h.pipe("go")
	h.start("once", "echo on >begun; read -r x <go\n")
	h.receive()
	if err := os.WriteFile(filepath.Join(h.dir, "clock"), []byte("900000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, err := h.Start(t.Context(), "once", "another step", "digest", "true\n"); err != nil || is.Ran > time.Hour {
		t.Errorf("it has run for %s: %v", is.Ran, err)
	}
	h.send()
	h.follow("once")
}

// cutting is a guest that gets the beginning of what is sent to it.
type cutting struct{ providers.Guest }

func (g cutting) Run(ctx context.Context, c providers.Command) (providers.Output, error) {
	c.Stdin = io.LimitReader(c.Stdin, 6)
	return g.Guest.Run(ctx, c)
}

// A script that did not come whole does not run.
func TestHalfAScript(t *testing.T) {
	h := newHome(t)
	half := provision.In(cutting{h.guest}, "tools")
	if _, err := half.Start(t.Context(), "once", "step", "digest", "rm -r unused"); err == nil || !strings.Contains(err.Error(), "the script did not come whole") {
		t.Errorf("it was started: %v", err)
	}
	if h.has("tools.once", "script") || h.has("tools.once", "claim") {
		t.Error("it may run")
	}
}

// Wherever a long line is cut, no secret is written, in whole or in part.
func TestSecretsInLongLines(t *testing.T) {
	const secret = "correct horse battery staple"
	mask := func(text string) string { return strings.ReplaceAll(text, secret, "(sensitive)") }
	for _, before := range []int{0, 1, 49<<10 - 10, 48<<10 - 10, 64<<10 - 10, 64 << 10, 100_000} {
		for _, size := range []int{7, 4096, 1 << 20} {
			line := strings.Repeat("x", before) + secret + strings.Repeat("y", 70_000)
			var pieces []string
			for rest := line; rest != ""; {
				n := min(size, len(rest))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			path := filepath.Join(t.TempDir(), "log")
			if err := provision.WriteLog(path, mask, pieces...); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(text) != mask(line) {
				t.Errorf("%d bytes before it, in pieces of %d: the log is not the masked line", before, size)
			}
		}
	}
}
