package sim

import "cmp"

// Phase is a row of the state table: `gone some there` and what it means.
type Phase struct {
	Of, State string
	Leftover  bool
}

// Phases is the state table.
func Phases() []Phase {
	var all []Phase
	for _, row := range phases {
		all = append(all, Phase{
			Of:    string(row.recorded) + " " + string(row.stray) + " " + string(row.socket),
			State: cmp.Or(row.state, "unknown"), Leftover: row.leftover,
		})
	}
	return all
}

// LockPath is where the lock of a VM's disk is, in a host's folder.
func LockPath(dir, name string) string {
	return dir + "/" + disksDir + "/" + name + rootSuffix + lockSuffix
}

// DiskPath is where a VM's disk is.
func DiskPath(dir, name string) string { return dir + "/" + disksDir + "/" + name + rootSuffix }
