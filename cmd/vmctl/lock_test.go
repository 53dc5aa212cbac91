package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stuckStart is a spec whose apply runs for as long as a test needs it.
const stuckStart = spec + `
provider "sim" "here" {
  fault {
    op    = "start"
    kind  = "hang"
    times = 1
  }
}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"

  start {
    timeout = "1h"
  }

  stop {
    grace = "1s"
  }
}
`

// The run lock of a running apply, of one whose lock file was removed, and of one that was
// killed.
//
// row A13
// row A14
func TestLockOfALiveAndOfADeadHolder(t *testing.T) {
	s := newSite(t, stuckStart)
	holder := s.vmctl("apply", "--auto-approve", "--json")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for !strings.Contains(lines.Text(), `"op":"start"`) || strings.Contains(lines.Text(), `"type":"plan"`) {
		if !lines.Scan() {
			t.Fatal("the apply ended before it started anything")
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	who := fmt.Sprintf("vmctl apply (process %d on %s, since TIME)", holder.Process.Pid, host)
	locked := fmt.Sprintf("Error: take the run lock in HOME/d: \"vmctl apply\" (pid %d on %s) has held it since TIME\n  next: wait for it to end, or let this command wait with --lock-timeout=5m\n",
		holder.Process.Pid, host)
	refused := "Error: release lock \"lock\": it was not released: its holder lives\n  seen: " + who +
		fmt.Sprintf("\n  next: wait for it to end, or ask it to end safely: kill %d\n", holder.Process.Pid)
	listed := "LOCK  STATE   HOLDER\nlock  held    " + who + "\n"
	check := func(when, want string, code int, args ...string) {
		t.Helper()
		text, got := ran(t, s.vmctl(args...))
		text = instant.ReplaceAllString(strings.ReplaceAll(text, s.home, "HOME"), "TIME")
		if d := cmp.Diff(want, text); d != "" || got != code {
			t.Errorf("%s: vmctl %s: exit code %d, want %d (-want +got):\n%s", when, strings.Join(args, " "), got, code, d)
		}
	}
	waiting := "Waiting for at most 100ms: the run lock is held by " + who + ".\n"
	check("while it lives", waiting+locked, 7, "apply", "--auto-approve", "--lock-timeout=100ms")
	check("while it lives", locked, 7, "state", "rm", "--force", "--lock-timeout=0s", "dev")
	check("while it lives", listed, 0, "lock", "list")
	check("while it lives", refused, 7, "lock", "release", "lock")

	if err := os.Remove(filepath.Join(s.home, "d", "lock")); err != nil {
		t.Fatal(err)
	}
	check("with its file removed", strings.Replace(locked, "since TIME", "since TIME, though its lock file was replaced", 1), 7, "destroy", "--auto-approve", "--lock-timeout=0s")
	check("with its file removed", listed, 0, "lock", "list")
	check("with its file removed", refused, 7, "lock", "release", "lock")

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := holder.Wait(); err == nil {
		t.Fatal("the holder was not killed")
	}
	check("after it was killed", "LOCK  STATE   HOLDER\nlock  free    dead, and left its record: "+who+"\nTo remove what a dead holder left: vmctl lock release lock\n", 0, "lock", "list")
	check("after it was killed", "Released: the lock lock is free; its holder is dead, and its record was removed: "+who+".\n", 0, "lock", "release", "lock")
	check("in the end", "LOCK  STATE   HOLDER\nlock  free    -\n", 0, "lock", "list")
	if text, code := ran(t, s.vmctl("apply", "--auto-approve", "--lock-timeout=0s")); code != 0 {
		t.Errorf("the next apply: exit code %d\n%s", code, text)
	}
}

// ran runs a command, and returns its output and its exit code.
func ran(t *testing.T, cmd *exec.Cmd) (text string, code int) {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}
