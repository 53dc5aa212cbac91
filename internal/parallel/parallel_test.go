package parallel_test

import (
	"slices"
	"sync"
	"testing"

	"vmctl/internal/parallel"
)

// Every index is done once, whatever the number of workers.
func TestDo(t *testing.T) {
	for _, workers := range []int{1, 3, 10} {
		for _, n := range []int{0, 1, 7} {
			var mu sync.Mutex
			var got []int
			parallel.Do(workers, n, func(i int) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, i)
			})
			slices.Sort(got)
			want := []int{}
			for i := range n {
				want = append(want, i)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d workers did %v of %d", workers, got, n)
			}
		}
	}
}

// As many calls as there are workers are under way at once.
func TestDoAtOnce(t *testing.T) {
	var together sync.WaitGroup
	together.Add(3)
	parallel.Do(3, 3, func(int) {
		together.Done()
		together.Wait()
	})
}
