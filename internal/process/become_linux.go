package process

import (
	"errors"
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

// InMemory returns a file with a text, at its beginning, which is in memory alone. As a standard input it can be opened as
// /dev/stdin: a pipe without a writer could not. The caller closes it.
func InMemory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "stdin") //nolint:gosec // a file descriptor fits
	if _, err := file.Write(text); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
