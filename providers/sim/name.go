package sim

import (
	"fmt"

	"vmctl/providers/machine"
)

// checkName says what is wrong with the name of a VM or a disk; nil: nothing.
func checkName(name string) error {
	if len(name) > nameLimit {
		return fmt.Errorf("name = %q: a name has at most %d bytes", name, nameLimit)
	}
	return machine.CheckName(name)
}
