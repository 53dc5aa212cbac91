package run_test

import (
	"bytes"
	"errors"
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
	status, err := run.Attached(run.Command{
		Args: []string{program(t, `cat; echo "$1|$NAME|$HOME"; pwd >&2; exit 7`), "a b; $(c)"}, Env: []string{"NAME=value", "PATH=/bin:/usr/bin"},
		Dir: "/", Stdin: strings.NewReader("read\n"), Stdout: &out, Stderr: &problems,
	})
	if status != 7 || err != nil {
		t.Errorf("status %d, %v; want 7", status, err)
	}
	if out.String() != "read\na b; $(c)|value|\n" || problems.String() != "/\n" {
		t.Errorf("it wrote %q and %q", out.String(), problems.String())
	}
	if status, err := run.Attached(run.Command{Args: []string{program(t, "exit 0")}}); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestNotAttached(t *testing.T) {
	if _, err := run.Attached(run.Command{Args: []string{"no-such-program"}}); !errors.Is(err, run.ErrNotFound) ||
		err.Error() != "run no-such-program: there is no such program" {
		t.Errorf("a program that is not there: %v", err)
	}
	killed := program(t, "kill -9 $$")
	if _, err := run.Attached(run.Command{Args: []string{killed}}); err == nil || err.Error() != "run "+killed+": signal: killed" {
		t.Errorf("a program that was ended: %v", err)
	}
}
