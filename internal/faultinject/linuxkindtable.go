//go:build linux && (amd64 || arm64)

package faultinject

import "golang.org/x/sys/unix"

type kind struct {
	name   string
	file   int  // which argument is the file
	byPath bool // by its path, else by a descriptor
	flags  int  // which argument has the flags of an open; 0: it is none
}

// kinds are the calls that change files, as Go makes them on Linux.
var kinds = withLegacy(map[int]kind{
	unix.SYS_OPENAT:    {name: "openat", file: 1, byPath: true, flags: 2},
	unix.SYS_WRITE:     {name: "write"},
	unix.SYS_PWRITE64:  {name: "pwrite64"},
	unix.SYS_FSYNC:     {name: "fsync"},
	unix.SYS_FTRUNCATE: {name: "ftruncate"},
	unix.SYS_FCHMOD:    {name: "fchmod"},
	unix.SYS_FCHMODAT:  {name: "fchmodat", file: 1, byPath: true},
	unix.SYS_RENAMEAT:  {name: "renameat", file: 1, byPath: true},
	unix.SYS_LINKAT:    {name: "linkat", file: 1, byPath: true},
	unix.SYS_UNLINKAT:  {name: "unlinkat", file: 1, byPath: true},
	unix.SYS_MKDIRAT:   {name: "mkdirat", file: 1, byPath: true},
	unix.SYS_FLOCK:     {name: "flock"},
})
