// Package real says which tests run: those of real systems, and those that take long.
package real

import (
	"fmt"
	"io"
	"testing"
)

// SkipVariable is the variable that leaves out real systems, where it is 1.
const SkipVariable = "VMCTL_SKIP_REAL"

// Skipped reports whether the tests of real systems are left out, since their user said
// so: by -short, or by the variable. Anything else that it holds is an error, since a
// run that tests less than it seems to must not pass. What is left out is said on out in
// the one way that go test shows of a package that passes.
func Skipped(out io.Writer, getenv func(string) string) (bool, error) {
	switch said := getenv(SkipVariable); {
	case said != "" && said != "1":
		return false, fmt.Errorf("%s is %q: 1 leaves the tests of real systems out, and unset they run", SkipVariable, said)
	case said == "" && !testing.Short():
		return false, nil
	}
	_, err := fmt.Fprintf(out, "real systems are left out (-short or %s=1)\ntesting: warning: no tests to run\n", SkipVariable)
	return true, err
}

// Long leaves out a test where only the short ones are wanted, of which scripts/short.sh limits the time.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("not short")
	}
}
