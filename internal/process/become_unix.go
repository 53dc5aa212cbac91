//go:build unix

package process

import (
	"fmt"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Become turns this process into another program, with the same process ID. The program outlives its parent
// and a closed terminal: it gets no signal at the end of the parent, and ignores SIGHUP. It creates files that
// only the user may read. Become returns only after an error.
func Become(p Program) error {
	signal.Reset(unix.SIGINT, unix.SIGTERM) // from here on they end this process, as they end the program
	signal.Ignore(unix.SIGHUP)
	if err := outliveParent(); err != nil {
		return fmt.Errorf("run %s: %w", p.Path, err)
	}
	unix.Umask(0o077)
	if p.Stdin != nil {
		if err := giveStdin(p.Stdin); err != nil {
			return fmt.Errorf("run %s: give it its input: %w", p.Path, err)
		}
	}
	if err := unix.Exec(p.Path, p.Args, p.Env); err != nil {
		return fmt.Errorf("run %s: %w", p.Path, err)
	}
	return nil
}
