// Package faultinject lets tests see every system call by which code changes files,
// and decide what becomes of it: a disk that is full at the third write, a folder
// that cannot be written to, a file system without locks. The calls are real, as
// is the code that makes them, and no privilege is needed.
package faultinject

import "syscall"

// Call is a system call that changes a file or a folder, or locks a file.
type Call struct {
	N    int    // from 1, of those in the folder
	Name string // as in the manual: "openat", "write", "renameat"
	Path string // of the file, absolute; the old one of a rename
}

// Decide returns the result of a call: 0 lets it happen, Pretended lets it succeed without
// happening, and any other value is its error. It must not make such calls itself.
type Decide func(Call) syscall.Errno

// Pretended is for calls that a test can do without, such as an fsync, which takes
// as long as the disk does.
const Pretended = ^syscall.Errno(0)
