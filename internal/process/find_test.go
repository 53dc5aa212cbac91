package process_test

import (
	"os"
	"testing"

	"vmctl/internal/process"
)

// A process that is found tells its user.
func TestSearchTellsTheUser(t *testing.T) {
	a := realWorld{}.Run(t, "polite")
	found, err := process.Host{}.Search(t.Context(), process.HasArgument(mark))
	for _, f := range found {
		if f.PID != a.PID {
			continue
		}
		if f.UID != os.Getuid() {
			t.Errorf("it is of user %d, want %d", f.UID, os.Getuid())
		}
		return
	}
	t.Errorf("pid %d is not found: %v, %v", a.PID, found, err)
}
