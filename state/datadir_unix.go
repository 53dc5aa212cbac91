//go:build unix

package state

import (
	"fmt"
	"io/fs"
	"syscall"
)

// folderID returns the device and the inode of a folder. A folder that is moved keeps its
// ID, and a copy has another one.
func folderID(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
