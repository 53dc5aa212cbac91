package sshfs

import "vmctl/internal/mountinfo"

// Kind is the kind of file system of a folder that sshfs serves, in the kernel's list of mounts.
const Kind = "fuse.sshfs"

// mounts returns those mounts of sshfs that nothing is mounted over.
func mounts(all []mountinfo.Entry) []Mount {
	last := map[string]int{}
	for i, e := range all {
		last[e.Path] = i
	}
	var found []Mount
	for i, e := range all {
		if e.Kind == Kind && last[e.Path] == i {
			found = append(found, Mount{Source: e.Source, Path: e.Path})
		}
	}
	return found
}
