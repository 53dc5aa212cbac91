package sshfs

import (
	"cmp"
	"fmt"
	"slices"
)

// List returns the mounts of sshfs that this process sees. Where mounts are not supported, there are none.
func List() ([]Mount, error) {
	all, err := list()
	return mounts(all), err
}

// At returns the type of the file system that is mounted at a path, which is absolute and without symbolic links; "": none is.
func At(path string) (kind string, err error) {
	all, err := list()
	for _, e := range all {
		if e.Path == path {
			kind = e.Kind
		}
	}
	return kind, err
}

// Holder is a process that uses a mount.
type Holder struct {
	PID     int
	Command string // with its arguments
}

// String names the process.
func (h Holder) String() string { return fmt.Sprintf("pid %d: %s", h.PID, shortened(h.Command)) }

func shortened(command string) string {
	const most = 80
	text := []rune(command)
	if len(text) <= most {
		return command
	}
	return string(text[:most]) + "..."
}

func sorted(all []Holder) []Holder {
	slices.SortFunc(all, func(a, b Holder) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

// BusyError reports that a mount stays because processes use it.
type BusyError struct {
	Path    string
	Holders []Holder // sorted by pid
}

// Error names the mount.
func (e *BusyError) Error() string { return "unmount " + e.Path + ": it is in use" }
