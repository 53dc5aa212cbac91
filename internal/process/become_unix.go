//go:build unix

package process

import (
	"fmt"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// Become turns this process into another program, with the same process ID. The program outlives a closed terminal,
// since it ignores SIGHUP, and its parent, unless it is Bound. It creates files that only the user may read. Become
// returns only after an error.
func Become(p Program) error {
	signal.Reset(unix.SIGINT, unix.SIGTERM) // from here on they end this process, as they end the program
	signal.Ignore(unix.SIGHUP)
	runtime.LockOSThread() // each thread has a parent-death signal of its own, and the program gets that of the last one
	defer runtime.UnlockOSThread()
	if err := tieToParent(p.Bound); err != nil {
		return fmt.Errorf("run %s: %w", p.Path, err)
	}
	unix.Umask(0o077)
	if err := unix.Exec(p.Path, p.Args, p.Env); err != nil {
		return fmt.Errorf("run %s: %w", p.Path, err)
	}
	return nil
}
