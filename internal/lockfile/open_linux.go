package lockfile

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// hasOpen reports whether a process has a file open. What cannot be read is no:
// the kernel's lock decides, this only notices a file that was replaced.
func hasOpen(o Owner, file string) bool {
	host, err := os.Hostname()
	if err != nil || o.Host != host || o.PID <= 0 {
		return false
	}
	return isOpenIn(strconv.Itoa(o.PID), file)
}

// selfHasOpen reports whether this process has a file open.
func selfHasOpen(file string) bool { return isOpenIn("self", file) }

func isOpenIn(process, file string) bool {
	open, err := filepath.Glob(filepath.Join("/proc", process, "fd", "*"))
	if err != nil {
		return false
	}
	for _, path := range open {
		info, err := os.Stat(path) // of what is open, also where its name is gone
		if err != nil {
			continue
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && statID(s) == file {
			return true
		}
	}
	return false
}
