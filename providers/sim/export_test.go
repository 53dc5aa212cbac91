package sim

import "cmp"

// Phase is a row of the state table: a combination such as `gone some there`, and its
// meaning.
type Phase struct {
	Of, State string
	Leftover  bool
}

// Phases returns the state table.
func Phases() []Phase {
	var all []Phase
	for _, row := range phases {
		all = append(all, Phase{
			Of:    string(row.recorded) + " " + string(row.unrecorded) + " " + string(row.socket),
			State: cmp.Or(row.state, "unknown"), Leftover: row.leftover,
		})
	}
	return all
}

// LockPath returns the path of the lock of a VM's disk, in a host's folder.
func LockPath(dir, name string) string {
	return dir + "/" + disksDir + "/" + name + rootSuffix + lockSuffix
}

// DiskPath returns the path of a VM's disk.
func DiskPath(dir, name string) string { return dir + "/" + disksDir + "/" + name + rootSuffix }
