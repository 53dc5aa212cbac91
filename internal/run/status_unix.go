//go:build unix

package run

import (
	"os"
	"syscall"
)

// signaled returns the status that a shell gives to the end of a process by a signal.
func signaled(s *os.ProcessState) int {
	const bySignal = 128
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return bySignal + int(w.Signal())
	}
	return bySignal
}
