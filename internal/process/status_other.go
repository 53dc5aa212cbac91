//go:build !unix

package process

import "os/exec"

func statusOf(exit *exec.ExitError) int { return exit.ExitCode() }
