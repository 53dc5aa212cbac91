package lima

import (
	"context"
	"io/fs"

	"vmctl/internal/process"
	"vmctl/providers"
)

// ScriptsIn is for tests.
var ScriptsIn = scriptsIn

// WithoutForks is for tests.
var WithoutForks = withoutForks

// StateBesideHidden returns the run state of an instance where other users' processes are hidden, and the
// reason of an unknown one.
func StateBesideHidden(ctx context.Context, p providers.Provider, name string) (state, reason string, err error) {
	s, err := p.(*Provider).readInstance(ctx, name, found{hidden: fs.ErrPermission})
	if err != nil {
		return "", "", err
	}
	return s.state, s.reason, nil
}

// MountScript returns the script that mounts additional disks with file systems.
func MountScript(names, fsTypes, mountPoints []string) string {
	var disks []usedDisk
	for i, name := range names {
		disks = append(disks, usedDisk{name: name, fsType: fsTypes[i], mountPoint: mountPoints[i]})
	}
	return mountScript(disks)
}

// IsQEMUOf reports whether a process with the arguments of an instance's QEMU is that.
func IsQEMUOf(p providers.Provider, name string, f process.Found) bool {
	return p.(*Provider).isOf(name, roleDriver, f)
}
