//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// signalled is added to the number of the signal that ended a process, as in a shell.
const signalled = 128

func statusOf(exit *exec.ExitError) int {
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return signalled + int(s.Signal())
	}
	return exit.ExitCode()
}
