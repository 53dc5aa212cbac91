//go:build unix

package state

import (
	"fmt"
	"io/fs"
	"syscall"
)

// folderID is what the file system calls a folder: it stays when that is moved, and a copy
// has another.
func folderID(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
