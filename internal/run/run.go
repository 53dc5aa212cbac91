// Package run runs programs to their end, by lists of arguments: no shell reads
// them. It is the only place that does so; what outlives the command that started
// it is internal/process's.
package run

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
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

// Attached runs a program that a person is in front of, such as an editor, in this
// process's group, so that the terminal serves both alike, and returns its status.
// It waits for as long as the program runs: nothing but that person ends it. An
// error means that it did not run, or ended by a signal.
func Attached(c Command) (status int, err error) {
	path, err := exec.LookPath(c.Args[0])
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", c.Args[0], ErrNotFound)
	}
	cmd := &exec.Cmd{
		Path: path, Args: c.Args, Env: append([]string{}, c.Env...), Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr,
	}
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	default:
		return 0, fmt.Errorf("run %s: %w", c.Args[0], err)
	}
}
