package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vmctl/internal/sshx/sshtest"
)

func TestShellPassesTheStatus(t *testing.T) {
	h := lodged(t, sshtest.Server{Shell: "echo inside; exit 3"})
	h.stdinFile()
	h.run("vm", "shell", "dev").exits(3).says("inside").silent("Error")
}

// A signal in the midst of a shell ends it, and restores the terminal.
func TestASignalEndsAShell(t *testing.T) {
	began := make(chan struct{})
	h := lodged(t, sshtest.Server{Shell: "cat", Seen: func(request string) {
		if request == "shell" {
			close(began)
		}
	}})
	terminal := openTerminal(t)
	h.stdin = terminal
	before := modes(t, terminal)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan ending)
	go func() { ended <- h.runIn(ctx, "vm", "shell", "dev") }()
	<-began
	if modes(t, terminal) == before {
		t.Error("the terminal is not raw while the shell runs")
	}
	cancel()
	(<-ended).exits(130).warns("interrupted")
	if after := modes(t, terminal); after != before {
		t.Errorf("the modes of the terminal were %v and are %v", before, after)
	}
}

// A signal also ends a command that waits for input.
func TestASignalEndsACommand(t *testing.T) {
	began := make(chan struct{})
	h := lodged(t, sshtest.Server{Seen: func(request string) {
		if request == "exec" {
			close(began)
		}
	}})
	h.stdin = openTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan ending)
	go func() { ended <- h.runIn(ctx, "vm", "exec", "dev", "--", "cat") }()
	<-began
	cancel()
	(<-ended).exits(130).warns("interrupted")
}

func modes(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

// openTerminal returns the program's end of a terminal without input.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the user's end first: it ends the program's wait for keys
		if err := keyboard.Close(); err != nil {
			t.Error(err)
		}
		if err := program.Close(); err != nil && !strings.Contains(err.Error(), "already closed") {
			t.Error(err)
		}
	})
	return program
}
