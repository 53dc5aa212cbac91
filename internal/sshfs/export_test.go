package sshfs

import "vmctl/internal/mountinfo"

// PathsOf returns the visible mounts of sshfs in a list of mounts.
func PathsOf(text string) ([]Mount, error) {
	all, err := mountinfo.Parse(text)
	return mounts(all), err
}
