package lima_test

import (
	"slices"
	"testing"

	"vmctl/internal/process"
	"vmctl/providers/lima"
)

// A host agent that starts ssh is one host agent, also before its child has its own arguments. Two that
// were started side by side are two.
func TestForksAreNoSecondHostAgent(t *testing.T) {
	found := func(pid, parent int) process.Found {
		return process.Found{Identity: process.Identity{PID: pid}, Parent: parent}
	}
	var got []int
	for _, f := range lima.WithoutForks([]process.Found{found(10, 1), found(11, 10), found(12, 1), found(13, 11)}) {
		got = append(got, f.PID)
	}
	if want := []int{10, 12}; !slices.Equal(got, want) {
		t.Errorf("host agents %v, want %v", got, want)
	}
}
