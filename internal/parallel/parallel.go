// Package parallel calls functions side by side.
package parallel

import "sync"

// Do calls do for each of n indexes, in up to that many workers, and returns when all calls have.
func Do(workers, n int, do func(i int)) {
	var wait sync.WaitGroup
	workers = min(workers, n)
	for w := range workers {
		wait.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wait.Wait()
}
