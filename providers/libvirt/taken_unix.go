//go:build unix

package libvirt

import (
	"io/fs"
	"syscall"
)

// taken is how many bytes of its file system a file takes.
func taken(info fs.FileInfo) uint64 {
	const block = 512 // bytes, of st_blocks
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Blocks) * block
	}
	return uint64(info.Size())
}
