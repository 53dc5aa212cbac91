package state_test

import (
	"errors"
	"strings"

	"vmctl/state"
)

// told is what an error says with what it says to type, a line each.
func told(err error) string {
	var e state.Advised
	if !errors.As(err, &e) {
		return err.Error()
	}
	return strings.Join(append([]string{err.Error()}, e.Next()...), "\n")
}
