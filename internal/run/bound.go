package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"vmctl/internal/process"
)

// boundGrace is the time that a program gets to end once it was asked to.
const boundGrace = time.Minute

// Bound runs a program that nobody is in front of, on Linux and macOS in a process group of its own: a terminal sends it nothing. On Linux it
// ends at once when this process is killed. Once ctx ends, Bound asks it to end, and forces it after a minute. A status other than 0 is
// an error, too, with what the program wrote to its standard error unless c.Stderr takes that; after the end of ctx, also that of ctx.
func Bound(ctx context.Context, c Command) (status int, err error) {
	cmd := unattended(ctx, c)
	var problems bytes.Buffer
	if c.Stderr == nil {
		cmd.Stderr = &problems
	}
	cmd.SysProcAttr = bound()
	if err = cmd.Run(); err == nil {
		return 0, nil
	}
	if text := bytes.TrimSpace(problems.Bytes()); len(text) > 0 {
		err = fmt.Errorf("%w\n%s", err, text)
	}
	return statusOf(cmd), errors.Join(err, ctx.Err())
}

// unattended returns a command that nobody is in front of. Once ctx ends it is asked to end, and forced after a minute.
func unattended(ctx context.Context, c Command) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Args[0])
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Args, append([]string{}, c.Env...), c.Dir, c.Stdin, c.Stdout, c.Stderr
	cmd.Cancel, cmd.WaitDelay = func() error { return process.AskChild(cmd.Process) }, boundGrace
	return cmd
}

// statusOf returns the status with which a command exited; 0: it did not exit by itself.
func statusOf(cmd *exec.Cmd) int {
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		return cmd.ProcessState.ExitCode()
	}
	return 0
}
