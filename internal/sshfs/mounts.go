package sshfs

import "vmctl/internal/mountinfo"

// kindOfMount is the file system's type in the list of mounts.
const kindOfMount = "fuse.sshfs"

// mounts returns those mounts of sshfs that nothing is mounted over.
func mounts(all []mountinfo.Entry) []Mount {
	last := map[string]int{}
	for i, e := range all {
		last[e.Path] = i
	}
	var found []Mount
	for i, e := range all {
		if e.Kind == kindOfMount && last[e.Path] == i {
			found = append(found, Mount{Source: e.Source, Path: e.Path})
		}
	}
	return found
}
