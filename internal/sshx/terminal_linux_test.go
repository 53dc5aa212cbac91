package sshx_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
)

func TestShellOnATerminal(t *testing.T) {
	keyboard, screen := openTerminal(t)
	cooked, err := term.GetState(int(screen.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	resized := make(chan struct{})
	var once sync.Once
	var requests requestLog
	target := known(t, sshtest.Server{Shell: "echo ready; head -n 1", Seen: func(r string) {
		requests.add(r)
		if r == "window-change" {
			once.Do(func() { close(resized) })
		}
	}})
	out := &echo{t: t, keyboard: keyboard, resized: resized}
	status, err := sshx.Shell(t.Context(), target, sshx.Terminal{In: screen, Out: out, Err: io.Discard, Type: "vt100"})
	if err != nil || status != 0 {
		t.Fatalf("status %d: %v", status, err)
	}
	if got := requests.String(); !strings.HasPrefix(got, "pty-req shell window-change") {
		t.Errorf("requests %q", got)
	}
	after, err := term.GetState(int(screen.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(*after) != fmt.Sprint(*cooked) {
		t.Error("the terminal is left in raw mode")
	}
}

// echo is the screen of the user, and drives the keyboard: at the first output it resizes
// the window, and once the server knows the new size, it types the line that ends the
// session.
type echo struct {
	t        *testing.T
	keyboard *os.File
	resized  chan struct{}
	seen     int
}

func (e *echo) Write(b []byte) (int, error) {
	e.seen++
	if e.seen > 1 {
		return len(b), nil
	}
	if err := unix.IoctlSetWinsize(int(e.keyboard.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 132}); err != nil {
		return 0, err
	}
	if err := unix.Kill(os.Getpid(), unix.SIGWINCH); err != nil {
		return 0, err
	}
	<-e.resized
	_, err := e.keyboard.WriteString("end\n")
	return len(b), err
}

// openTerminal returns the two ends of a pseudo terminal.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keyboard.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := screen.Close(); err != nil {
			t.Error(err)
		}
	})
	return keyboard, screen
}
