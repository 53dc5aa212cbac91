package libvirt

import "regexp"

var (
	// hostfwdPattern is the value of QEMU's hostfwd option.
	hostfwdPattern = regexp.MustCompile(`^(?:(tcp|udp)?:)?([0-9.]*):([0-9]+)-[^:]*:([0-9]+)$`)
	// takenPattern matches QEMU's message about a port that it cannot get.
	takenPattern = regexp.MustCompile(`Could not set up host forwarding rule '([^']*)'`)
)
