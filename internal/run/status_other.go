//go:build !unix

package run

import "os"

// signaled returns the status of a process that did not exit by itself.
func signaled(*os.ProcessState) int { return 1 }
