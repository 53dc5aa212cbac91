package state_test

import (
	"errors"
	"strings"

	"vmctl/state"
)

// told returns the message of an error and its advice, one line each.
func told(err error) string {
	var e state.Advised
	if !errors.As(err, &e) {
		return err.Error()
	}
	return strings.Join(append([]string{err.Error()}, e.Next()...), "\n")
}
