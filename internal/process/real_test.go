package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/process"
)

// realWorld has processes of this machine, seen through host.
type realWorld struct{ host process.Host }

func (w realWorld) Host() process.Host { return w.host }

// speakers maps a role to the number of its processes that say when they are ready.
var speakers = map[string]int{"polite": 1, "late": 1, "deaf": 1, "tree": 3, "family": 3, "keeper": 2}

func (w realWorld) Run(t *testing.T, as string) *actor {
	t.Helper()
	stage := newStage(t)
	child, err := w.host.Start(process.Command{
		Path: self(t), Args: []string{mark}, Env: append(os.Environ(), role+"="+as),
		Stdin: stage.in, Stdout: stage.out, Stderr: os.Stderr,
	})
	must(t, err)
	a := &actor{
		Heard:   func() { t.Helper(); stage.listen(t, "heard") },
		LetGo:   func() { fmt.Fprintln(stage.lines, "go") },
		End:     stage.letGo,
		Collect: func() { t.Helper(); collect(t, child) },
	}
	// Each process that is left reads the end of its input and ends.
	t.Cleanup(func() {
		stage.letGo()
		collect(t, child)
		must(t, w.host.Wait(context.WithoutCancel(t.Context()), a.Below...))
	})
	a.Identity, err = child.Capture(t.Context())
	must(t, err)
	for range speakers[as] {
		pid := stage.listen(t, "")
		if pid == child.PID() {
			continue
		}
		id, err := w.host.Capture(t.Context(), pid)
		must(t, err)
		a.Below = append(a.Below, id)
	}
	return a
}

// collect waits for the end of the child, whichever it is.
func collect(t *testing.T, child *process.Child) {
	t.Helper()
	err := child.Wait(context.WithoutCancel(t.Context()))
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Error(err)
	}
}

// stage is the input and the output of a process under test.
type stage struct {
	in, out, lines *os.File
	said           *bufio.Reader
	letGo          func() // ends the input; it may be repeated
}

func newStage(t *testing.T) *stage {
	t.Helper()
	in, lines, err := os.Pipe()
	must(t, err)
	said, out, err := os.Pipe()
	must(t, err)
	letGo := sync.OnceFunc(func() { must(t, lines.Close()) })
	t.Cleanup(func() {
		letGo()
		must(t, errors.Join(in.Close(), out.Close(), said.Close()))
	})
	return &stage{in: in, out: out, lines: lines, said: bufio.NewReader(said), letGo: letGo}
}

// listen returns the pid of whoever speaks next: as, unless that is empty.
func (s *stage) listen(t *testing.T, as string) int {
	t.Helper()
	line, err := s.said.ReadString('\n')
	must(t, err)
	var who string
	var pid int
	if _, err := fmt.Sscan(line, &who, &pid); err != nil || as != "" && who != as {
		t.Fatalf("a process said %q, want %s", strings.TrimSpace(line), as)
	}
	return pid
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}
