package run_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/run"
)

func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	return path
}

func TestAttached(t *testing.T) {
	var out, problems bytes.Buffer
	status, err := run.Attached(t.Context(), run.Command{
		Args: []string{program(t, `cat; echo "$1|$NAME|$HOME"; pwd >&2; exit 7`), "a b; $(c)"}, Env: []string{"NAME=value", "PATH=/bin:/usr/bin"},
		Dir: "/", Stdin: strings.NewReader("read\n"), Stdout: &out, Stderr: &problems,
	})
	if status != 7 || err != nil {
		t.Errorf("status %d, %v; want 7", status, err)
	}
	if out.String() != "read\na b; $(c)|value|\n" || problems.String() != "/\n" {
		t.Errorf("it wrote %q and %q", out.String(), problems.String())
	}
	if status, err := run.Attached(t.Context(), run.Command{Args: []string{program(t, "exit 0")}}); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestNotAttached(t *testing.T) {
	if _, err := run.Attached(t.Context(), run.Command{Args: []string{"no-such-program"}}); !errors.Is(err, run.ErrNotFound) ||
		err.Error() != "run no-such-program: there is no such program" {
		t.Errorf("a program that is not there: %v", err)
	}
	killed := program(t, "kill -9 $$")
	if status, err := run.Attached(t.Context(), run.Command{Args: []string{killed}}); status != 128+9 || err == nil || err.Error() != "run "+killed+": signal: killed" {
		t.Errorf("a program that was ended: status %d, %v", status, err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, err := run.Attached(t.Context(), run.Command{Args: []string{plain}}); status != 0 || !errors.Is(err, run.ErrNotExecutable) {
		t.Errorf("a file that is not executable: status %d, %v", status, err)
	}
}

// A program is asked to end once nobody wants it any more, and ends as it likes.
func TestAttachedIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	here, there := io.Pipe()
	go func() {
		if line, err := bufio.NewReader(here).ReadString('\n'); line != "ready\n" || err != nil {
			t.Errorf("it said %q, %v", line, err)
		}
		cancel()
		_, _ = io.Copy(io.Discard, here) //nolint:errcheck // it says no more
	}()
	asked := program(t, `trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done`)
	if status, err := run.Attached(ctx, run.Command{Args: []string{asked}, Env: []string{"PATH=/bin:/usr/bin"}, Stdout: there}); status != 9 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	_ = there.Close() //nolint:errcheck // a pipe in memory
}

func TestBound(t *testing.T) {
	var out bytes.Buffer
	failing := program(t, `cat; echo "$1|$NAME|$HOME"; echo why >&2; exit 7`)
	status, err := run.Bound(t.Context(), run.Command{Args: []string{failing, "a b"}, Env: []string{"NAME=value", "PATH=/bin:/usr/bin"}, Stdin: strings.NewReader("read\n"), Stdout: &out})
	if err == nil || status != 7 || !strings.Contains(err.Error(), "why") {
		t.Errorf("status %d, %v, want 7, and why", status, err)
	}
	if out.String() != "read\na b|value|\n" {
		t.Errorf("it wrote %q", out.String())
	}
	if status, err := run.Bound(t.Context(), run.Command{Args: []string{program(t, "exit 0")}}); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// A program that nobody is in front of is asked to end when its context does, and the error says both.
func TestBoundIsAskedToEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	here, there := io.Pipe()
	go func() {
		if line, err := bufio.NewReader(here).ReadString('\n'); line != "ready\n" || err != nil {
			t.Errorf("it said %q, %v", line, err)
		}
		cancel()
		_, _ = io.Copy(io.Discard, here) //nolint:errcheck // it says no more
	}()
	asked := program(t, `trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done`)
	status, err := run.Bound(ctx, run.Command{Args: []string{asked}, Env: []string{"PATH=/bin:/usr/bin"}, Stdout: there})
	if status != 9 || !errors.Is(err, context.Canceled) {
		t.Errorf("status %d, %v, want 9 and the end of the context", status, err)
	}
	_ = there.Close() //nolint:errcheck // a pipe in memory
}
