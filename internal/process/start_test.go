package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/process"
)

func start(t *testing.T, c process.Command) *process.Child {
	t.Helper()
	child, err := process.Host{}.Start(c)
	must(t, err)
	t.Cleanup(func() {
		must(t, child.Force())
		collect(t, child)
	})
	return child
}

func TestChildTellsHowItEnded(t *testing.T) {
	child := start(t, process.Command{Path: self(t), Env: append(os.Environ(), role+"=deaf")})
	must(t, child.Wait(t.Context()))
	must(t, child.Force())
	must(t, child.Wait(over(t)))

	child = start(t, process.Command{Path: self(t), Env: append(os.Environ(), role+"=unknown")})
	var exit *exec.ExitError
	for range 2 {
		if err := child.Wait(t.Context()); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("a role that does not exist: %v", err)
		}
	}
}

// A child that could not be captured can still be ended by its parent.
func TestChildIsForcedWithoutIdentity(t *testing.T) {
	stage := newStage(t)
	child := start(t, process.Command{Path: self(t), Env: append(os.Environ(), role+"=deaf"), Stdin: stage.in})
	if err := child.Wait(over(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("wait for one that runs: %v", err)
	}
	must(t, child.Force())
	if err := child.Wait(t.Context()); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("forced, and ended with %v", err)
	}
}

// One that ends at once is not captured, and says how it ended.
func TestChildThatEndsAtOnce(t *testing.T) {
	child := start(t, process.Command{Path: self(t), Env: append(os.Environ(), role+"=unknown")})
	id, err := child.Capture(t.Context())
	if err == nil {
		must(t, process.Host{}.Wait(t.Context(), id))
		_, err = child.Capture(t.Context())
	}
	if !errors.Is(err, process.ErrGone) {
		t.Errorf("captured after its end: %v", err)
	}
}

func TestNothingIsLookedUpToStart(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for path, want := range map[string]string{
		"sleep":   `start "sleep": give the absolute path of the program`,
		"./sleep": `start "./sleep": give the absolute path of the program`,
		"":        `start "": give the absolute path of the program`,
		missing:   "start " + missing + ": ",
	} {
		_, err := process.Host{}.Start(process.Command{Path: path})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
}

// What a child gets is what was asked for, and nothing of this process.
func TestChildGetsWhatItIsGiven(t *testing.T) {
	t.Setenv("NOT_FOR_CHILDREN", "1")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	out, err := os.Create(filepath.Join(dir, "out"))
	must(t, err)
	child := start(t, process.Command{
		Path: self(t), Args: []string{"one two", ""}, Dir: dir,
		Env: []string{role + "=report", "GIVEN=2"}, Stdout: out,
	})
	must(t, child.Wait(t.Context()))
	must(t, out.Close())
	said, err := os.ReadFile(filepath.Join(dir, "out"))
	must(t, err)
	want := `args ["one two" ""] dir ` + dir + ` given "2" not "" input 0 bytes`
	if got := string(bytes.TrimSpace(said)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// tampered is this machine, but for what it is made to say.
type tampered struct {
	process.System
	opened int
	blind  error
}

func (s *tampered) Open(pid int) (process.Handle, error) {
	s.opened++
	return s.System.Open(pid)
}

func (s *tampered) Look(pid int) (process.Facts, error) {
	if s.blind != nil {
		return process.Facts{}, s.blind
	}
	return s.System.Look(pid)
}

// Once it is collected its pid may belong to anybody.
func TestCollectedChildIsLeftAlone(t *testing.T) {
	system := &tampered{System: process.ThisSystem()}
	child, err := process.NewHost(system).Start(process.Command{Path: self(t), Env: append(os.Environ(), role+"=deaf")})
	must(t, err)
	collect(t, child)
	system.opened = 0
	must(t, child.Force())
	if system.opened != 0 {
		t.Error("the pid of a collected child was opened")
	}
}

// A child that cannot be read, and so never ended, is not left running.
func TestUnreadableChildIsNotLeft(t *testing.T) {
	stage := newStage(t)
	said, out, err := os.Pipe()
	must(t, err)
	_, err = process.NewHost(&tampered{System: process.ThisSystem(), blind: fs.ErrPermission}).Start(process.Command{
		Path: self(t), Env: append(os.Environ(), role+"=deaf"), Stdin: stage.in, Stdout: out,
	})
	if err == nil || !strings.HasSuffix(err.Error(), " cannot be read: permission denied") {
		t.Errorf("started: %v", err)
	}
	// The end of what it could say comes when it has ended.
	must(t, out.Close())
	_, err = io.Copy(io.Discard, said)
	must(t, errors.Join(err, said.Close()))
}
