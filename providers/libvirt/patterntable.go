package libvirt

import "vmctl/internal/pattern"

var (
	// hostfwdPattern is the value of QEMU's hostfwd option.
	hostfwdPattern = pattern.New(`^(?:(tcp|udp)?:)?([0-9.]*):([0-9]+)-[^:]*:([0-9]+)$`)
	// takenPattern matches QEMU's message about a port that it cannot get.
	takenPattern = pattern.New(`Could not set up host forwarding rule '([^']*)'`)
)
