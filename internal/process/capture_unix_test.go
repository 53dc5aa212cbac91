//go:build unix

package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"vmctl/internal/process"
)

// script writes a program that waits for the end of its input.
func script(t *testing.T, dir, interpreter string) string {
	t.Helper()
	path := filepath.Join(dir, "script")
	must(t, os.WriteFile(path, []byte("#!"+interpreter+"\nread line\n"), 0o755))
	return path
}

// Started again and again, by several at once: what is captured is the program,
// and never what the process was on the way.
//
// row J26
// row J27
func TestCaptureTwoHundred(t *testing.T) {
	const spawns, starters = 200, 8
	path := script(t, t.TempDir(), "/usr/bin/env sh")
	for _, c := range []struct {
		name, argv0 string
		command     process.Command
	}{
		{"sleep", "/bin/sleep", process.Command{Path: "/bin/sleep", Args: []string{"1000000"}}},
		{"env script", "sh", process.Command{Path: path, Env: []string{"PATH=/usr/bin:/bin"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stage := newStage(t)
			c.command.Stdin = stage.in
			captured := make(chan process.Identity, spawns)
			var all sync.WaitGroup
			for range starters {
				all.Go(func() {
					for range spawns / starters {
						captured <- spawn(t, c.command)
					}
				})
			}
			all.Wait()
			close(captured)
			seen := map[string]int{}
			for id := range captured {
				seen[id.Argv0+" of "+filepath.Base(id.Exe)]++
			}
			exe, err := filepath.EvalSymlinks("/bin/" + filepath.Base(c.argv0))
			must(t, err)
			if want := c.argv0 + " of " + filepath.Base(exe); seen[want] != spawns {
				t.Errorf("captured %v, want %d times %s", seen, spawns, want)
			}
		})
	}
}

// spawn starts, captures, forces and collects a process.
func spawn(t *testing.T, c process.Command) process.Identity {
	child, err := process.Host{}.Start(c)
	if err != nil {
		t.Error(err)
		return process.Identity{}
	}
	id, err := child.Capture(t.Context())
	if err != nil {
		t.Error(err)
	}
	if id.PGID != id.PID {
		t.Errorf("pid %d is in group %d, want its own", id.PID, id.PGID)
	}
	if session, err := unix.Getsid(id.PID); err != nil || session != id.PID {
		t.Errorf("pid %d is in session %d, want its own (%v)", id.PID, session, err)
	}
	if _, err := (process.Host{}).Force(id); err != nil {
		t.Error(err)
	}
	if err := child.Wait(t.Context()); err == nil {
		t.Error("it ended by itself")
	}
	return id
}

// A PATH full of lies, or an empty one, changes nothing: nothing is looked up.
//
// row J28
// row J30
func TestHostilePath(t *testing.T) {
	a := realWorld{}.Run(t, "polite")
	lies := t.TempDir()
	for _, tool := range []string{"ps", "pgrep", "cat", "sysctl", "kill", "pkill", "env", "sh"} {
		must(t, os.WriteFile(filepath.Join(lies, tool), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	}
	for _, path := range []string{lies, "", filepath.Join(lies, "missing")} {
		t.Setenv("PATH", path)
		id, err := process.Host{}.Capture(t.Context(), a.PID)
		must(t, err)
		if id != a.Identity {
			t.Errorf("PATH=%s: captured %v, want %v", path, id, a.Identity)
		}
		verify(t, process.Host{}, a.Identity, process.Match)
		found, err := process.Host{}.Find(t.Context(), func(argv []string) bool { return fmt.Sprint(argv) == "nobody" })
		if err != nil || len(found) != 0 {
			t.Errorf("PATH=%s: found %v, %v", path, found, err)
		}
	}
}

func TestChildWithoutEnvironment(t *testing.T) {
	said, out, err := os.Pipe()
	must(t, err)
	child := start(t, process.Command{Path: "/usr/bin/env", Stdout: out})
	must(t, errors.Join(child.Wait(t.Context()), out.Close()))
	environment, err := io.ReadAll(said)
	must(t, errors.Join(err, said.Close()))
	if len(environment) != 0 {
		t.Errorf("got %q, want nothing", environment)
	}
}
