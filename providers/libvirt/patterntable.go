package libvirt

import "regexp"

var (
	// hostfwdPattern is the value of QEMU's hostfwd option.
	hostfwdPattern = regexp.MustCompile(`^(?:(tcp|udp)?:)?([0-9.]*):([0-9]+)-[^:]*:([0-9]+)$`)
	// takenPattern is what QEMU says of a port that it cannot have.
	takenPattern = regexp.MustCompile(`Could not set up host forwarding rule '([^']*)'`)
)
