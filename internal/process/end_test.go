package process_test

import (
	"slices"
	"testing"

	"vmctl/internal/process"
)

func TestDescendants(t *testing.T) {
	// pid: parent, start
	table := map[int][2]int{
		4: {0, 1}, 8: {4, 10}, 12: {8, 20}, 16: {8, 15}, 20: {16, 30}, 24: {4, 11},
		28: {8, 9},                 // older than its parent: that number was given to 8 later
		32: {99, 50},               // its parent has ended
		36: {40, 60}, 40: {36, 60}, // each says to come from the other
		44: {44, 1}, // its own parent
	}
	parents := map[int]int{}
	for pid, of := range table {
		parents[pid] = of[0]
	}
	started := func(pid int) (uint64, error) {
		of, found := table[pid]
		if !found {
			return 0, process.ErrNone
		}
		return uint64(of[1]), nil
	}
	for pid, want := range map[int][]int{
		8:   {8, 12, 16, 20},
		16:  {16, 20},
		20:  {20},
		4:   {4, 8, 24, 12, 16, 20},
		36:  {36, 40},
		44:  {44},
		99:  {99},
		100: {100},
	} {
		if got := process.Descendants(pid, parents, started); !slices.Equal(got, want) {
			t.Errorf("of %d: %v, want %v", pid, got, want)
		}
	}
}
