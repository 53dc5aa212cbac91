//go:build unix

package libvirt

import (
	"fmt"
	"io/fs"
	"syscall"
)

// taken returns the disk space that a file uses, in bytes.
func taken(info fs.FileInfo) uint64 {
	const block = 512 // bytes, of st_blocks
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blocks) * block
	}
	return uint64(info.Size())
}

// inodeOf returns the device and the inode of a file; "": they are unknown.
func inodeOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
