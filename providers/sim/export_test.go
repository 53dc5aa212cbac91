package sim

import (
	"cmp"
	"fmt"
	"slices"

	"vmctl/providers"
)

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

// Watch makes the index of a host watch from the first VM on.
func Watch(p providers.Provider) { p.(*Provider).index.watchedFrom = 1 }

// Users returns the VMs that use disks and hold ports, and the error of reading them, as the index of a host knows them.
func Users(p providers.Provider, disks []string, ports []providers.Claim) string {
	host := p.(*Provider)
	users, err := host.users(disks, "")
	text := fmt.Sprintf("disks %v, error %v", users, err)
	err = host.lookUp(func(x *index) error {
		for _, port := range ports {
			text += fmt.Sprintf(", %s %d", port.Key, len(x.runsOn(port, "")))
		}
		return nil
	})
	return fmt.Sprintf("%s, error %v", text, err)
}

// UsersInFiles returns the same, read from all files.
func UsersInFiles(p providers.Provider, disks []string, ports []providers.Claim) string {
	host := p.(*Provider)
	names, listErr := host.named(vmsDir, vmSuffix)
	err := listErr
	users, runs := map[string][]string{}, map[string]int{}
	for _, disk := range disks {
		users[disk] = nil
	}
	for _, r := range host.readAll(names) {
		switch {
		case r.err != nil && err == nil:
			users, err = map[string][]string{}, fmt.Errorf("VM %s may use any disk: %w", r.name, r.err)
		case err == nil && r.Config != nil:
			for _, a := range r.Config.Disks {
				users[a.Name] = append(users[a.Name], r.name)
			}
		}
		if r.err != nil || r.Run == nil {
			continue
		}
		for _, port := range ports {
			if slices.ContainsFunc(r.Run.Ports, func(h heldPort) bool { return h.got().Claim().Overlaps(port) }) {
				runs[port.Key]++
			}
		}
	}
	text := fmt.Sprintf("disks %v, error %v", users, err)
	for _, port := range ports {
		text += fmt.Sprintf(", %s %d", port.Key, runs[port.Key])
	}
	return fmt.Sprintf("%s, error %v", text, listErr)
}

// HomePath returns the path of the inside of a VM, in a host's folder.
func HomePath(dir string, id providers.ID) string {
	return (&Provider{dir: dir}).homePath(id)
}
