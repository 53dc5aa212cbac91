package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// outliveParent clears the signal that this process gets when the thread that started it ends.
func outliveParent() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }

// giveStdin makes text the standard input. It is in memory alone, and can be opened as /dev/stdin: a pipe
// without a writer could not.
func giveStdin(text []byte) error {
	fd, err := unix.MemfdCreate("stdin", 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "stdin") //nolint:gosec // a file descriptor fits
	if _, err := file.Write(text); err != nil {
		return err
	}
	if _, err := file.Seek(0, 0); err != nil {
		return err
	}
	return unix.Dup3(fd, 0, 0)
}
