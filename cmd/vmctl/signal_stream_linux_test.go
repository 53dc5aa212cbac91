package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vmctl/internal/real"
)

const simSpec = spec + `
provider "sim" "here" {}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
}
`

// A reader that left does not end an apply, and does not change the exit code.
func TestAnApplyWithoutAReaderGoesOn(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"apply", "--auto-approve"}, {"apply", "--auto-approve", "--json"}} {
		s := newSite(t, simSpec)
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := s.vmctl(args...)
		cmd.Stdout = writer
		if out := finish(t, cmd); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%v: exit code %d, want 0: %s", args, cmd.ProcessState.ExitCode(), out)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		s.exits(0, "plan", "--detailed-exitcode")
		s.exits(0, "destroy", "--auto-approve")
	}
}

// A hang-up does not end a program that was started with nohup.
func TestASignalThatIsIgnoredStaysIgnored(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, slowSpec)
	vmctl := s.vmctl("apply", "--auto-approve")
	cmd := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$0" "$@"`, vmctl.Path}, vmctl.Args[1:]...)...)
	cmd.Dir, cmd.Env = vmctl.Dir, vmctl.Env
	out, err := obey(cmd, []cue{{signal: syscall.SIGHUP, text: "vm.dev: waiting"}})
	if err != nil || cmd.ProcessState.ExitCode() != 0 || out.cues != 1 {
		t.Errorf("%d signals, exit code %d, want 1 and 0: %v %s%s", out.cues, cmd.ProcessState.ExitCode(), err, &out.stdout, &out.stderr)
	}
	s.exits(0, "destroy", "--auto-approve")
}

// sleepy starts vmctl with a pipe for standard output that holds one page, and does not read
// the pipe.
func (s *site) sleepy(args ...string) (cmd *exec.Cmd, reader *os.File, stderr *bufio.Reader) {
	s.t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	fd := int(writer.Fd())
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, 4096)
	if err := errors.Join(err, syscall.SetNonblock(fd, true)); err != nil {
		s.t.Fatal(err)
	}
	for err == nil { // full: nothing that vmctl writes has room
		_, err = syscall.Write(fd, []byte(" "))
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		s.t.Fatal(err)
	}
	cmd = s.vmctl(args...)
	cmd.Stdout = writer
	pipe, err := cmd.StderrPipe()
	if err := errors.Join(err, cmd.Start(), writer.Close()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.end(cmd) })
	return cmd, reader, bufio.NewReader(pipe)
}

// A reader that sleeps holds up no step, no lock and no journal: another apply gets the lock
// and finds everything done. The reader gets every line once it wakes.
func TestASleepingReaderHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, simSpec)
	cmd, reader, stderr := s.sleepy("apply", "--auto-approve", "--json")
	awaitLock(t, s)
	if out := s.exits(0, "apply", "--auto-approve", "--lock-timeout=1m"); !strings.Contains(out, "No changes.") {
		t.Errorf("the apply that waited for the lock found something to do:\n%s", out)
	}
	var types []string
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var doc struct{ Type string }
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			t.Errorf("%v: %s", err, lines.Text())
		}
		types = append(types, doc.Type)
	}
	if err := cmd.Wait(); err != nil {
		rest, unread := io.ReadAll(stderr)
		t.Errorf("%v: %s (%v)", err, rest, unread)
	}
	want := "plan step_started step_done step_started step_done step_started step_done summary"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("lines are %s, want %s", got, want)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	s.exits(0, "destroy", "--auto-approve")
}

// A signal ends the waiting for a reader that never reads.
func TestASignalEndsTheWaitForAReader(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, simSpec)
	for _, args := range [][]string{{"apply", "--auto-approve", "--json"}, {"plan"}, {"status", "--json"}} {
		cmd, reader, stderr := s.sleepy(append(args, "--log-level=debug")...)
		if _, err := stderr.ReadString('\n'); err != nil { // it obeys signals before it says anything
			t.Fatal(err)
		}
		if args[0] == "apply" {
			awaitLock(t, s)
			s.exits(0, "apply", "--auto-approve", "--lock-timeout=1m")
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(stderr)
		if err := errors.Join(err, cmd.Wait()); cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("%v: %v, want exit code 130: %s", args, err, rest)
		}
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
	}
	s.exits(0, "destroy", "--auto-approve")
}

// awaitLock returns once another vmctl has taken the run lock of a site.
func awaitLock(t *testing.T, s *site) {
	t.Helper()
	for begun := time.Now(); ; {
		out := s.exits(0, "status")
		if strings.Contains(out, "the run lock is held by vmctl apply") || strings.Contains(out, "running") {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("no vmctl takes the run lock:\n%s", out)
		}
	}
}
