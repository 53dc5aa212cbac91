//go:build unix && !linux

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// tieToParent does nothing: no signal is tied to the end of the parent.
func tieToParent(bool) error { return nil }

// giveStdin makes text the standard input, in a file that no folder names.
func giveStdin(text []byte) error {
	file, err := os.CreateTemp("", "vmctl-stdin-")
	if err != nil {
		return err
	}
	if err := os.Remove(file.Name()); err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	if _, err := file.Seek(0, 0); err != nil {
		return err
	}
	return replace(0, file)
}

// replace makes file the one that fd names. The next program keeps it.
func replace(fd int, file *os.File) error { return unix.Dup2(int(file.Fd()), fd) } //nolint:gosec // a file descriptor fits
