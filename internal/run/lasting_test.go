//go:build unix

package run_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vmctl/internal/process"
	"vmctl/internal/run"
)

// lasting is a command through the shell's gate, with files as its outputs.
func lasting(t *testing.T, path string, args ...string) (c run.Command, output, problems *os.File) {
	t.Helper()
	env := []string{"NAME=a b\n'\"$(c)", "PATH=/bin:/usr/bin"}
	command, ok := process.ShellGate(path, args, env)
	if !ok {
		t.Fatal("there is no shell")
	}
	file := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), name), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	}
	output, problems = file("output"), file("problems")
	return run.Command{Args: command, Env: env, Dir: "/", Stdout: output, Stderr: problems}, output, problems
}

func read(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A program gets its arguments and variables as they are, is deaf to the end of a terminal, and makes files for its user alone. It
// begins after its identity is recorded, and has that.
func TestLasting(t *testing.T) {
	script := program(t, `echo "$$"; printf '%s|' "$@" "$NAME"; umask; kill -HUP $$; cat; pwd; if (: <&3) 2>/dev/null; then echo open; fi; echo why >&2; exit 7`)
	c, output, problems := lasting(t, script, "a b", `"$(c)"`, "")
	c.Stdin = strings.NewReader("read\n")
	var id process.Identity
	status, err := run.Lasting(t.Context(), c, script, func(now process.Identity) error {
		id = now
		if text := read(t, output); text != "" {
			t.Errorf("it has begun before its record, and said %q", text)
		}
		return nil
	})
	if exit := new(*exec.ExitError); status != 7 || !errors.As(err, exit) {
		t.Errorf("status %d, %v, want 7", status, err)
	}
	pid, rest, _ := strings.Cut(read(t, output), "\n")
	if want := "a b|\"$(c)\"||a b\n'\"$(c)|0077\nread\n/\n"; rest != want || read(t, problems) != "why\n" {
		t.Errorf("it wrote %q and %q, want %q", rest, read(t, problems), want)
	}
	if pid != strconv.Itoa(id.PID) || id.PGID != id.PID {
		t.Errorf("it is pid %s, and recorded as %+v", pid, id)
	}
}

// The record of a program that runs is that of its process.
func TestLastingIsRecognised(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	c, output, _ := lasting(t, cat)
	here, there := io.Pipe()
	c.Stdin = here
	ids, ended := make(chan process.Identity, 1), make(chan error, 1)
	go func() {
		_, err := run.Lasting(t.Context(), c, cat, func(id process.Identity) error { ids <- id; return nil })
		ended <- err
	}()
	id := <-ids
	if _, err := there.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	for read(t, output) == "" { // it has begun once it says so
		if verdict, reason := (process.Host{}).Verify(id); verdict == process.Gone || verdict == process.Reused {
			t.Fatalf("it is not recognised: %s", reason)
		}
	}
	if verdict, reason := (process.Host{}).Verify(id); verdict != process.Match {
		t.Errorf("it runs, and is %s: %s", verdict, reason)
	}
	if err := errors.Join(there.Close(), <-ended); err != nil {
		t.Error(err)
	}
	if verdict, reason := (process.Host{}).Verify(id); verdict != process.Gone && verdict != process.Reused {
		t.Errorf("it ended, and is %s: %s", verdict, reason)
	}
}

// Without a record nothing begins.
func TestLastingWithoutARecord(t *testing.T) {
	script := program(t, "echo begun")
	c, output, _ := lasting(t, script)
	full := errors.New("the disk is full")
	_, err := run.Lasting(t.Context(), c, script, func(process.Identity) error { return full })
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "start "+script+": the disk is full") || read(t, output) != "" {
		t.Errorf("%v, and it wrote %q", err, read(t, output))
	}
}

// A program is asked to end when its context does, and the error says both.
func TestLastingIsAskedToEnd(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	if out, err := exec.CommandContext(t.Context(), "mkfifo", ready).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pipe, err := os.OpenFile(ready, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := pipe.Close(); err != nil {
			t.Error(err)
		}
	}()
	script := program(t, `trap 'exit 9' TERM; echo ready >"$1"; while :; do sleep 0.05; done`)
	c, _, _ := lasting(t, script, ready)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if line, err := bufio.NewReader(pipe).ReadString('\n'); line != "ready\n" || err != nil {
			t.Errorf("it said %q, %v", line, err)
		}
		cancel()
	}()
	status, err := run.Lasting(ctx, c, script, func(process.Identity) error { return nil })
	if status != 9 || !errors.Is(err, context.Canceled) {
		t.Errorf("status %d, %v, want 9 and the end of the context", status, err)
	}
}
