package cli

import (
	"os"
	"strconv"
	"strings"

	"vmctl/spec"
)

// Getenv returns the last value of a variable, "" without one.
func (e Env) Getenv(name string) string {
	value := ""
	for _, entry := range e.Environ {
		if key, v, ok := strings.Cut(entry, "="); ok && key == name {
			value = v
		}
	}
	return value
}

func (a *app) getenv(name string) string { return a.env.Getenv(name) }

// columns returns the width that COLUMNS asks for, 0 if it is unset or below 20.
func (a *app) columns() int {
	n, err := strconv.Atoi(a.getenv("COLUMNS"))
	if err != nil || n < 20 {
		return 0
	}
	return n
}

// HideVariables removes the variables of specs from the environment of this process, so that nothing that a
// library starts inherits a secret.
func HideVariables(environ []string) {
	for _, entry := range environ {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, spec.EnvironPrefix) {
			_ = os.Unsetenv(name) //nolint:errcheck // it fails only for names that no environment has
		}
	}
}
