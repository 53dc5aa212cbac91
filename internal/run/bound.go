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
	cmd := exec.CommandContext(ctx, c.Args[0])
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Args, append([]string{}, c.Env...), c.Dir, c.Stdin, c.Stdout, c.Stderr
	var problems bytes.Buffer
	if c.Stderr == nil {
		cmd.Stderr = &problems
	}
	cmd.SysProcAttr, cmd.WaitDelay = bound(), boundGrace
	cmd.Cancel = func() error { return process.AskChild(cmd.Process) }
	if err = cmd.Run(); err == nil {
		return 0, nil
	}
	if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
		status = cmd.ProcessState.ExitCode()
	}
	if text := bytes.TrimSpace(problems.Bytes()); len(text) > 0 {
		err = fmt.Errorf("%w\n%s", err, text)
	}
	return status, errors.Join(err, ctx.Err())
}
