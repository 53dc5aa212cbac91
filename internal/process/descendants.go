package process

import "slices"

// descendants returns pid and whoever descends from it, in the order of
// generations and pids, where a process keeps the number of its parent after the
// parent's end, as on Windows. A number may have been given to another since: a
// child is never older than its parent. started fails for those that have ended.
func descendants(pid int, parents map[int]int, started func(pid int) (uint64, error)) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		parent, err := started(all[i])
		if err != nil {
			continue
		}
		generation := []int{}
		for child, its := range parents {
			if its != all[i] || slices.Contains(all, child) {
				continue
			}
			if start, err := started(child); err == nil && start >= parent {
				generation = append(generation, child)
			}
		}
		slices.Sort(generation)
		all = append(all, generation...)
	}
	return all
}
