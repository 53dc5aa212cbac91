package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/lockfile"
)

// program returns a command that runs vmctl, from this test binary, in a folder with a spec.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.vmctl.hcl"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("vmctl") // testscript.Main put it there
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "VMCTL_LOG=")
	return cmd
}

// A signal ends the wait for the run lock, and nothing was done.
func TestSignalsInterrupt(t *testing.T) {
	data, err := os.MkdirTemp("", "d") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(data); err != nil {
			t.Error(err)
		}
	}()
	held, err := lockfile.Acquire(t.Context(), lockfile.Request{
		Path: filepath.Join(data, "lock"), Owner: lockfile.Owner{PID: os.Getpid(), Host: "here", Command: "a test", Since: time.Unix(0, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := program(t, "apply", "--auto-approve", "--lock-timeout=1h", "--data-dir="+data)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(stderr)
		first, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(first, "Waiting for at most 1h: the run lock is held by a test") {
			t.Errorf("before the signal vmctl says %q (%v)", first, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if second, err := lines.ReadString('\n'); err != nil || !strings.Contains(second, "interrupted") {
			t.Errorf("%s: vmctl says %q (%v)", signal, second, err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("%s: %v, want exit code 130", signal, err)
		}
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
}

// A reader that left is no failure; a full disk is one.
func TestStandardOutputGone(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, "validate")
	cmd.Stdout = writer
	if out := finish(t, cmd); cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("closed: exit code %d, want 0: %s", cmd.ProcessState.ExitCode(), out)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd = program(t, "validate", "--json")
	cmd.Stdout = full
	if out := finish(t, cmd); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, "write to standard output: write /dev/stdout: no space left on device") {
		t.Errorf("full: exit code %d, want 1: %s", cmd.ProcessState.ExitCode(), out)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
}

// finish runs a command to its end and returns its standard error.
func finish(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stderr.String()
}
