package sim

import (
	"fmt"
	"strings"
)

func badName(name string) error {
	return fmt.Errorf("name = %q: a name begins with a letter or a digit, has letters, digits and . _ + = ~ - only, and at most %d of them", name, nameLimit)
}

// isName reports whether a VM's file can have the name.
func isName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._+=~-", r)) {
			return false
		}
	}
	return name != "" && len(name) <= nameLimit
}
