package sim

import (
	"fmt"

	"vmctl/providers/machine"
)

// checkName fails if a VM or a disk cannot have that name.
func checkName(name string) error {
	if len(name) > nameLimit {
		return fmt.Errorf("name = %q: a name has at most %d bytes", name, nameLimit)
	}
	return machine.CheckName(name)
}
