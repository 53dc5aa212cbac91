//go:build unix

package busy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"vmctl/busy"
	"vmctl/state"
)

// childFolder names the folder for a process of this test binary that goes inside
// instead of testing.
const childFolder = "BUSY_TEST_FOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := stay(busy.Folder{Dir: dir}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func stay(f busy.Folder) error {
	me := who(os.Getpid() % 60)
	me.PID = os.Getpid()
	if _, err := f.Enter(context.Background(), dev, me); err != nil {
		return err
	}
	fmt.Println("inside")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// A killed process is inside no more, at once.
func TestKilledProcessIsNotInside(t *testing.T) {
	f := folder(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childFolder+"="+f.Dir)
	// The child waits for the end of its input, which Wait brings after the kill.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "inside\n" {
		t.Fatalf("child said %q, %v", said, err)
	}
	_, err = f.Close(t.Context(), busy.Closing{Address: dev, By: who(9)})
	var occupied *busy.OccupiedError
	if !errors.As(err, &occupied) || occupied.Holders[0].PID != cmd.Process.Pid {
		t.Errorf("close while it is inside: %v, want an *OccupiedError of pid %d", err, cmd.Process.Pid)
	}
	open := closeVM(t, f, busy.Closing{Address: dev, By: who(9), Wait: 1 << 40, Waiting: func([]state.Holder) {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("the child was not killed")
		}
	}})
	open()
	if got := inside(t, f); got != "" {
		t.Errorf("after the kill: %s", got)
	}
}
