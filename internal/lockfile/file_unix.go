//go:build unix

package lockfile

import (
	"fmt"
	"os"
	"syscall"
)

// fileID is the identity of an open file: as long as it is open, no other has it.
func fileID(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return statID(s)
}

func statID(s *syscall.Stat_t) string { return fmt.Sprintf("%d:%d", s.Dev, s.Ino) }
