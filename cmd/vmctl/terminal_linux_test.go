package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vmctl/cmd/internal/view/screentest"
	"vmctl/internal/real"
)

// user sits at a terminal on which vmctl runs.
type user struct {
	t        *testing.T
	keyboard *os.File // the user's end of the terminal
	tty      *os.File // the program's end
	cmd      *exec.Cmd

	mu     sync.Mutex
	screen *screentest.Terminal
	raw    strings.Builder
	wrote  *sync.Cond
	gone   bool // nothing more will be written
}

// sit starts vmctl at a terminal of a size, as its foreground program.
func sit(t *testing.T, cmd *exec.Cmd, columns, rows int) *user {
	t.Helper()
	u := &user{t: t, cmd: cmd, screen: screentest.New(columns, rows)}
	u.wrote = sync.NewCond(&u.mu)
	u.keyboard, u.tty = openTerminal(t)
	u.resize(columns, rows)
	cmd.Env = append([]string{"TERM=xterm"}, cmd.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = u.tty, u.tty, u.tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() //nolint:errcheck // it may have ended meanwhile
		}
	})
	go u.watch()
	return u
}

// watch writes the output of vmctl to the screen, until the terminal is closed.
func (u *user) watch() {
	buffer := make([]byte, 4096)
	for {
		n, err := u.keyboard.Read(buffer)
		u.mu.Lock()
		u.raw.Write(buffer[:n])
		if _, problem := u.screen.Write(buffer[:n]); problem != nil {
			err = errors.Join(err, problem)
		}
		u.gone = err != nil
		u.wrote.Broadcast()
		u.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sees waits until the screen shows every pattern.
func (u *user) sees(patterns ...string) {
	u.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	hangs := u.alarm()
	for {
		shown := u.screen.Text()
		missing := slices.IndexFunc(patterns, func(p string) bool { return !regexp.MustCompile(p).MatchString(shown) })
		if missing < 0 {
			return
		}
		if u.gone || hangs() {
			u.t.Fatalf("the screen never shows %s:\n%s", patterns[missing], u.screen)
		}
		u.wrote.Wait()
	}
}

// alarm returns a function that reports whether the user has waited for too long. It wakes
// waiting users when the time is up.
func (u *user) alarm() func() bool {
	rings := time.Now().Add(patience)
	timer := time.AfterFunc(patience, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.wrote.Broadcast()
	})
	u.t.Cleanup(func() { timer.Stop() })
	return func() bool { return !time.Now().Before(rings) }
}

func (u *user) types(keys string) {
	u.t.Helper()
	if _, err := u.keyboard.WriteString(keys); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) resize(columns, rows int) {
	u.t.Helper()
	size := &unix.Winsize{Row: uint16(rows), Col: uint16(columns)} //nolint:gosec // small numbers
	control(u.t, u.keyboard, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	u.mu.Lock()
	defer u.mu.Unlock()
	if now, _ := u.screen.Size(); now != columns {
		u.screen.Reflow(columns, rows)
	}
}

// leaves waits for the end of vmctl, demands an exit code, and returns all lines that stay.
func (u *user) leaves(code int) string {
	u.t.Helper()
	err := u.cmd.Wait()
	if u.cmd.ProcessState.ExitCode() != code {
		u.t.Errorf("exit code %d, want %d (%v)", u.cmd.ProcessState.ExitCode(), code, err)
	}
	if err := u.tty.Close(); err != nil {
		u.t.Error(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for !u.gone {
		u.wrote.Wait()
	}
	if len(u.screen.Unknown) > 0 {
		u.t.Errorf("the terminal was told %q", u.screen.Unknown)
	}
	return u.screen.String()
}

// openTerminal returns the two ends of a pseudo terminal.
func openTerminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keyboard.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
	n := 0
	control(t, keyboard, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keyboard, tty
}

const (
	controlC = "\x03"
	controlD = "\x04"
)

// At the prompt Ctrl-C, the end of input and anything but yes do nothing.
func TestNoAnswerDoesNothing(t *testing.T) {
	t.Parallel()
	for keys, says := range map[string]string{
		controlC: "apply: nothing was done: there was no answer",
		controlD: "apply: nothing was done: there was no answer",
		"y\n":    `apply: nothing was done: the answer was "y", not "yes"`,
	} {
		s := newSite(t, simSpec)
		u := sit(t, s.vmctl("apply"), 100, 30)
		u.sees(`Apply these 3 steps\? Type "yes":`)
		u.types(keys)
		if got := u.leaves(130); !strings.Contains(got, says) {
			t.Errorf("%q: the screen lacks %q:\n%s", keys, says, got)
		}
		if out := s.exits(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "1 to create") {
			t.Errorf("%q: something was done:\n%s", keys, out)
		}
	}
}

const slowSpec = spec + `
provider "sim" "here" {
  fault {
    op    = "wait_ready"
    kind  = "slow"
    delay = "10s"
    times = 1
  }
}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
}
`

// Running steps are shown below the log, and only the log stays.
func TestOnATerminalWhatRunsIsShown(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, slowSpec)
	u := sit(t, s.vmctl("apply"), 80, 40)
	u.sees(`Type "yes":`)
	u.types("yes\n")
	u.sees(`vm.dev: waiting for an answer \(at most 5m\)\n\n  vm.dev  [0-9]+s of 5m  waiting for an answer\n$`)
	shown := u.leaves(0)
	if strings.Contains(shown, "s of 5m") {
		t.Errorf("something of what ran stays:\n%s", shown)
	}
	log := regexp.MustCompile(`vm\.dev: waiting for an answer \(at most 5m\)\nvm\.dev: ready in [0-9.]+s\n\nApply is complete: 3 steps done\.\n`)
	if !log.MatchString(shown) {
		t.Errorf("the log is not whole:\n%s", shown)
	}
	s.exits(0, "destroy", "--auto-approve")
}

const hungSpec = spec + `
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

  stop {
    grace = "1s"
  }
}
`

// The window may change its size. The second Ctrl-C leaves at once, and restores the
// terminal.
func TestASecondControlCLeavesTheTerminalClean(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, hungSpec)
	u := sit(t, s.vmctl("apply", "--auto-approve"), 80, 40)
	before := modes(t, u.keyboard)
	u.sees(`\n\n  vm.dev  [0-9]+s of 10m  starting\n$`)
	u.resize(24, 30)
	u.sees(`\n\n  vm.dev  [0-9]+s of 10m  [a-z]*…\n$`)
	u.resize(100, 30)
	u.sees(`\n\n  vm.dev  [0-9]+s of 10m  starting\n$`)
	u.types(controlC)
	u.sees(`Stopping: interrupted: no further change begins\n  waiting for vm.dev: starting, for [0-9.]+s of at most 10m\n`,
		`\n  A second Ctrl-C leaves at once; the next plan then says what was interrupted.\n\n  vm.dev  [0-9]+s of 10m  starting\n$`)
	u.types(controlC)
	shown := u.leaves(130)
	if after := modes(t, u.keyboard); after != before {
		t.Errorf("the modes of the terminal were %v and are %v", before, after)
	}
	if !strings.HasSuffix(shown, "Error: apply: left at once: what was under way may be half done\n  next: vmctl plan says what was interrupted\n") ||
		strings.Contains(shown, "s of 10m  ") {
		t.Errorf("it leaves\n%s", shown)
	}
	s.exits(0, "apply", "--auto-approve")
	s.exits(0, "destroy", "--auto-approve")
}

// A window that is closed hangs vmctl up: running steps end safely, although nothing can be
// written any more.
func TestAWindowThatIsClosedInterrupts(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(hungSpec, `"hang"`, `"slow"`, 1))
	u := sit(t, s.vmctl("apply", "--auto-approve"), 80, 40)
	u.sees(`vm.dev: starting \(at most 10m\)\n`)
	if err := errors.Join(u.tty.Close(), u.keyboard.Close()); err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Wait(); u.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("exit code %d, want 130 (%v)", u.cmd.ProcessState.ExitCode(), err)
	}
	if out := s.exits(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "it runs, and was never ready since it started") {
		t.Errorf("the start did not end:\n%s", out)
	}
	s.exits(0, "destroy", "--auto-approve")
}

// The sequences for a terminal depend on its kind, and on its user's settings.
func TestWhatATerminalIsTold(t *testing.T) {
	real.Long(t)
	t.Parallel()
	const region, color = "\x1b[J", "\x1b[32m"
	for _, test := range []struct {
		name, variable, arg string
		region, color       bool
	}{
		{"a terminal", "COLORTERM=1", "--parallelism=1", true, true},
		{"NO_COLOR", "NO_COLOR=1", "--parallelism=1", true, false},
		{"--no-color", "COLORTERM=1", "--no-color", true, false},
		{"a dumb one", "TERM=dumb", "--parallelism=1", false, false},
	} {
		s := newSite(t, simSpec)
		cmd := s.vmctl("apply", "--auto-approve", test.arg)
		cmd.Env = append(cmd.Env, test.variable)
		u := sit(t, cmd, 80, 40)
		u.leaves(0)
		raw := u.raw.String()
		if got := strings.Contains(raw, region); got != test.region {
			t.Errorf("%s: something is redrawn %v, want %v: %q", test.name, got, test.region, raw)
		}
		if got := strings.Contains(raw, color); got != test.color {
			t.Errorf("%s: color %v, want %v: %q", test.name, got, test.color, raw)
		}
		if !test.region && strings.Contains(raw, "\x1b") {
			t.Errorf("%s: is told %q", test.name, raw)
		}
		s.exits(0, "destroy", "--auto-approve")
	}
}

func modes(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	var m unix.Termios
	control(t, f, func(fd int) error {
		found, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			m = *found
		}
		return err
	})
	return m
}

// control calls do on a terminal, and leaves it a file whose reader wakes when it is closed.
func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var done error
	err = raw.Control(func(fd uintptr) { done = do(int(fd)) })
	if err := errors.Join(err, done); err != nil {
		t.Fatal(err)
	}
}

// Leaving vmctl in the midst of a shell leaves no raw terminal behind.
func TestTerminalModesAreGivenBack(t *testing.T) {
	_, tty := openTerminal(t)
	before := modes(t, tty)
	restore := terminalModes(tty)
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	if modes(t, tty) == before {
		t.Fatal("the terminal is not raw")
	}
	restore()
	if after := modes(t, tty); after != before {
		t.Errorf("the modes were %v and are %v", before, after)
	}
	if err := tty.Close(); err != nil {
		t.Error(err)
	}
}
