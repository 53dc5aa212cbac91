package faultinject

import (
	"maps"

	"golang.org/x/sys/unix"
)

// withLegacy adds the older calls that newer architectures never had.
func withLegacy(all map[int]kind) map[int]kind {
	maps.Copy(all, map[int]kind{
		unix.SYS_RENAME: {name: "renameat", byPath: true},
		unix.SYS_UNLINK: {name: "unlinkat", byPath: true},
		unix.SYS_RMDIR:  {name: "unlinkat", byPath: true},
		unix.SYS_MKDIR:  {name: "mkdirat", byPath: true},
		unix.SYS_LINK:   {name: "linkat", byPath: true},
		unix.SYS_CHMOD:  {name: "fchmodat", byPath: true},
	})
	return all
}
