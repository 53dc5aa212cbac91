// Package run runs programs to their end, by lists of arguments: no shell reads
// them. It is the only place that does so; what outlives the command that started
// it is internal/process's.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"

	"vmctl/internal/process"
)

// Command describes a program with its arguments, environment and streams.
type Command struct {
	Args []string // the program, as it is typed, and its arguments
	Env  []string // all of it: nil is an empty environment
	Dir  string   // empty: this process's own
	// A terminal among them is the program's own while it runs.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// ErrNotFound says that no program of that name can be run.
var ErrNotFound = errors.New("there is no such program")

// ErrNotExecutable says that a file of that name cannot be run.
var ErrNotExecutable = errors.New("it is there, and not executable")

// Attached runs a program that a person is in front of, such as an editor, in this
// process's group, so that the terminal serves both alike, and returns its status.
// It waits for as long as the program runs. Once ctx ends it asks the program to
// end, and goes on waiting: that person may be asked about unsaved work. An error
// means that it did not run, with the status 0, or that it ended by a signal, with
// the status that a shell gives that: 128 and the signal's number.
func Attached(ctx context.Context, c Command) (status int, err error) {
	path, err := exec.LookPath(c.Args[0])
	switch {
	case errors.Is(err, fs.ErrPermission):
		return 0, fmt.Errorf("run %s: %w", c.Args[0], ErrNotExecutable)
	case err != nil:
		return 0, fmt.Errorf("run %s: %w", c.Args[0], ErrNotFound)
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Args, append([]string{}, c.Env...), c.Dir, c.Stdin, c.Stdout, c.Stderr
	cmd.Cancel = func() error { return process.AskChild(cmd.Process) }
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
	if cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode(), nil
	}
	return signaled(cmd.ProcessState), fmt.Errorf("run %s: %s", c.Args[0], cmd.ProcessState)
}
