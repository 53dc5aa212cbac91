//go:build !unix

package run

import "os"

// end ends a process: nothing asks it to.
func end(p *os.Process) error { return p.Kill() }

// signaled returns the status of a process that did not exit by itself.
func signaled(*os.ProcessState) int { return 1 }
