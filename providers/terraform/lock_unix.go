//go:build unix

package terraform

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// lockHolder reports whether another process holds the lock that Terraform takes on a state file, and its pid; 0: it is not known.
func lockHolder(path string) (pid int, held bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close() //nolint:errcheck // it is only read
	asked := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &asked); err != nil || asked.Type == unix.F_UNLCK {
		return 0, false
	}
	return max(int(asked.Pid), 0), true
}
