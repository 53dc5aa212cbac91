package executor

import (
	"container/heap"
	"slices"

	"vmctl/planner"
)

// queue knows the steps whose dependencies have ended, the first of the plan first. It costs the same for each step, however
// many a plan has.
type queue struct {
	missing []int   // the dependencies of each step that have not ended
	users   [][]int // the steps that depend on each step
	open    intHeap
}

func newQueue(steps []planner.Step) queue {
	q := queue{missing: make([]int, len(steps)), users: make([][]int, len(steps))}
	for i, s := range steps {
		q.missing[i] = len(s.After)
		for _, before := range s.After {
			q.users[before] = append(q.users[before], i)
		}
	}
	return q
}

// first returns the steps without dependencies.
func (q *queue) first() []int {
	var all []int
	for i, n := range q.missing {
		if n == 0 {
			all = append(all, i)
		}
	}
	return all
}

// end returns the steps that waited for nothing else than a step that has ended.
func (q *queue) end(step int) []int {
	var all []int
	for _, i := range q.users[step] {
		if q.missing[i]--; q.missing[i] == 0 {
			all = append(all, i)
		}
	}
	return all
}

func (q *queue) push(steps ...int) {
	for _, i := range steps {
		heap.Push(&q.open, i)
	}
}

// pop removes the first step; false: there is none.
func (q *queue) pop() (int, bool) {
	if len(q.open) == 0 {
		return 0, false
	}
	return heap.Pop(&q.open).(int), true
}

// intHeap is a heap.Interface of numbers.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a number at the end.
func (h *intHeap) Push(x any) { *h = append(*h, x.(int)) }

// Pop removes the number at the end.
func (h *intHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = slices.Delete(*h, last, last+1)
	return x
}
