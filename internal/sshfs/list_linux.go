package sshfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"vmctl/internal/mountinfo"
)

// Supported returns the reason why this system has no mounts of sshfs; nil: it has.
func Supported() error { return nil }

// list reads the list of mounts of this process.
func list() ([]mountinfo.Entry, error) { return mountinfo.List() }

// holders returns the processes that use a mount, as far as this user may see them. It asks the file system nothing.
func holders(path string) []Holder {
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var all []Holder
	for _, dir := range found {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || !uses(dir, path) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		all = append(all, Holder{PID: pid, Command: strings.Join(strings.Split(strings.TrimRight(string(command), "\x00"), "\x00"), " ")})
	}
	return sorted(all)
}

// uses reports whether a process works in a folder, runs a program of it or has a file of it open.
func uses(dir, path string) bool {
	links := []string{filepath.Join(dir, "cwd"), filepath.Join(dir, "root"), filepath.Join(dir, "exe")}
	open, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err == nil {
		for _, fd := range open {
			links = append(links, filepath.Join(dir, "fd", fd.Name()))
		}
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && (to == path || strings.HasPrefix(to, path+"/")) {
			return true
		}
	}
	return false
}
