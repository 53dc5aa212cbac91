//go:build linux

package acceptance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runLimit is the time that one program has in a test. It only separates a hang from slowness: no test
// passes or fails by it otherwise. A test that expects to wait for longer waits in several steps.
const runLimit = 10 * time.Minute

// endLimit is the time that a program has to end once it was asked to, and that processes have
// to close the outputs which they inherited from it.
const endLimit = 10 * time.Second

// bounded runs a command that a test has made with its path, arguments, folder and environment, for limit at most.
// A program that takes longer is asked for its goroutines by SIGQUIT, and ended soon after. An exit code
// other than 0 is no error.
func bounded(cmd *exec.Cmd, limit time.Duration) (stdout, stderr []byte, code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	own := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	own.Args, own.Dir, own.Env, own.SysProcAttr = cmd.Args, cmd.Dir, cmd.Env, cmd.SysProcAttr
	own.Cancel = func() error { return own.Process.Signal(syscall.SIGQUIT) }
	own.WaitDelay = endLimit
	var out, errs bytes.Buffer
	own.Stdout, own.Stderr = &out, &errs
	err = own.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s did not end within %s, and was ended. It had said:\n%s%s", strings.Join(cmd.Args, " "), limit, &out, &errs)
	case errors.Is(err, exec.ErrWaitDelay):
		err = fmt.Errorf("%s ended, but %s later another process still had its outputs open. It had said:\n%s%s",
			strings.Join(cmd.Args, " "), endLimit, &out, &errs)
	case errors.As(err, &exit):
		err = nil
	case err != nil:
		err = fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	if own.ProcessState == nil {
		return out.Bytes(), errs.Bytes(), -1, err
	}
	return out.Bytes(), errs.Bytes(), own.ProcessState.ExitCode(), err
}

// A program that hangs is ended, and the test says which one and what it had said; so is the wait for one
// that has left its outputs to another process.
func TestBoundedCommands(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"hangs", "echo begun; trap 'echo asked; exit' QUIT; while :; do sleep 0.01; done", "did not end within 10s, and was ended. It had said:\nbegun\nasked\n"},
		{"left open", "echo begun; sleep 60 & echo $!", "another process still had its outputs open. It had said:\nbegun\n"},
		{"fails", "echo begun; exit 3", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := time.Minute
			if tc.name == "hangs" {
				limit = 10 * time.Second
			}
			cmd := exec.Command("sh", "-c", tc.script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			stdout, _, code, err := bounded(cmd, limit)
			switch {
			case tc.want == "" && (err != nil || code != 3 || string(stdout) != "begun\n"):
				t.Errorf("it ended with %d, %v, and said %q", code, err, stdout)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
