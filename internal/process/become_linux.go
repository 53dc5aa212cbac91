package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// tieToParent sets whether this thread, and the program that it becomes, end when the thread ends that started this process.
func tieToParent(bound bool) error {
	signal := uintptr(0)
	if bound {
		signal = uintptr(unix.SIGKILL)
	}
	return unix.Prctl(unix.PR_SET_PDEATHSIG, signal, 0, 0, 0)
}

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
	return replace(0, file)
}

// replace makes file the one that fd names. The next program keeps it.
func replace(fd int, file *os.File) error { return unix.Dup3(int(file.Fd()), fd, 0) } //nolint:gosec // a file descriptor fits
