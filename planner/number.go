package planner

import (
	"cmp"
	"container/heap"
	"errors"
	"maps"
	"slices"
	"strings"

	"vmctl/providers"
)

// number sorts the steps, so that each comes after those it waits for, and turns
// edges between nodes into step IDs.
func (o *orderer) number() error {
	waiting, next := map[*node]int{}, map[*node][]*node{}
	o.plan.Steps = slices.Grow(o.plan.Steps, len(o.nodes))
	var ready queue
	for _, n := range o.nodes {
		waiting[n] = len(n.after)
		for m := range n.after {
			next[m] = append(next[m], n)
		}
		if len(n.after) == 0 {
			heap.Push(&ready, n)
		}
	}
	for ready.Len() > 0 {
		n := heap.Pop(&ready).(*node)
		n.step.ID = len(o.plan.Steps)
		n.step.After = nil
		for m := range n.after {
			n.step.After = append(n.step.After, m.step.ID)
		}
		slices.Sort(n.step.After)
		o.plan.Steps = append(o.plan.Steps, n.step)
		delete(waiting, n)
		for _, m := range next[n] {
			if waiting[m]--; waiting[m] == 0 {
				heap.Push(&ready, m)
			}
		}
	}
	if len(waiting) > 0 {
		return errors.New("internal error: a dependency cycle: " + stepNames(waiting))
	}
	return nil
}

// queue holds steps that could be next, the first in the order of the plan on top.
type queue []*node

func (q queue) Len() int { return len(q) }

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q queue) Less(i, j int) bool { return compareNodes(q[i], q[j]) < 0 }

func (q *queue) Push(n any) { *q = append(*q, n.(*node)) }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func compareNodes(a, b *node) int {
	return cmp.Or(cmp.Compare(slices.Index(providers.Phases(), a.step.Phase), slices.Index(providers.Phases(), b.step.Phase)),
		a.step.Address.Compare(b.step.Address), cmp.Compare(a.index, b.index))
}

func stepNames(nodes map[*node]int) string {
	var all []string
	for _, n := range slices.SortedFunc(maps.Keys(nodes), compareNodes) {
		all = append(all, n.step.Op+" "+n.step.Address.String())
	}
	return strings.Join(all, ", ")
}
