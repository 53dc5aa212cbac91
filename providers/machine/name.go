package machine

import (
	"fmt"
	"strings"
)

// CheckName fails if files cannot be named after an object of that name. It leaves the length
// to the system.
func CheckName(name string) error {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._+=~-", r)) {
			return badName(name)
		}
	}
	if name == "" {
		return badName(name)
	}
	return nil
}

func badName(name string) error {
	return fmt.Errorf("name = %q: a name begins with a letter or a digit and has letters, digits and . _ + = ~ - only", name)
}
