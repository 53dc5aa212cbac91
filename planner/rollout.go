package planner

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// rollouts lets restarts and replacements within one for_each go one at a time.
func (o *orderer) rollouts() {
	byChange := map[int][]*node{}
	for _, n := range o.nodes {
		byChange[n.step.Change] = append(byChange[n.step.Change], n)
	}
	last := map[spec.Address][]*node{}
	for _, i := range o.turns(byChange) {
		c := &o.plan.Changes[i]
		if c.Address.Key == "" || c.Action != providers.RestartIt && c.Action != providers.ReplaceIt {
			continue
		}
		for _, n := range byChange[i] {
			for _, m := range last[c.Address.Block()] {
				n.wait(m)
			}
		}
		if len(byChange[i]) > 0 {
			last[c.Address.Block()] = byChange[i]
		}
	}
}

// turns lists the changes by address, but those that free a claim before those
// that take it.
func (o *orderer) turns(byChange map[int][]*node) []int {
	var order []int
	seen := map[int]bool{}
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		var first []int
		for _, n := range byChange[i] {
			for m := range n.after {
				first = append(first, m.step.Change)
			}
		}
		slices.Sort(first)
		for _, j := range first {
			visit(j)
		}
		order = append(order, i)
	}
	for i := range o.plan.Changes {
		visit(i)
	}
	return order
}
