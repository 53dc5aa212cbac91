//go:build unix

package lima

import (
	"os"
	"syscall"
)

// ownerOf returns the ID of the user who owns a folder; -1: it cannot be told.
func ownerOf(folder string) int {
	if info, err := os.Stat(folder); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(s.Uid)
		}
	}
	return -1
}
