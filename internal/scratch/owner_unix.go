//go:build unix

package scratch

import (
	"io/fs"
	"os"
	"syscall"
)

// isMine reports whether the user of this process owns a file.
func isMine(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}
