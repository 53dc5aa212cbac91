package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// rollouts lets at most as many restarts and replacements within one for_each be
// under way as its policy says, one if it says nothing.
func (o *orderer) rollouts() error {
	byChange := map[int][]*node{}
	for _, n := range o.nodes {
		byChange[n.step.Change] = append(byChange[n.step.Change], n)
	}
	before := map[spec.Address][]int{} // of a block: the changes that take turns, in order
	for _, i := range o.turns(byChange) {
		c := &o.plan.Changes[i]
		if c.Address.Key == "" || len(byChange[i]) == 0 || c.Action != providers.RestartIt && c.Action != providers.ReplaceIt {
			continue
		}
		c.Turn = c.Address.Block()
		turns := before[c.Turn]
		if most := maxUnavailable(c.Policy); len(turns) >= most {
			for _, n := range byChange[i] {
				for _, m := range byChange[turns[len(turns)-most]] {
					n.wait(m)
				}
			}
		}
		before[c.Turn] = append(turns, i)
	}
	return o.deadlocks()
}

// deadlocks fails where one that takes turns waits for another one that can only
// have its turn later.
func (o *orderer) deadlocks() error {
	needs := map[int]map[int]bool{} // of each change: those that it waits for
	for _, n := range o.nodes {
		for m := range n.after {
			if from, to := m.step.Change, n.step.Change; from != to {
				if needs[to] == nil {
					needs[to] = map[int]bool{}
				}
				needs[to][from] = true
			}
		}
	}
	for i := range o.plan.Changes {
		for _, other := range slices.Sorted(maps.Keys(needs[i])) {
			if turn := o.plan.Changes[i].Turn; turn == (spec.Address{}) || turn != o.plan.Changes[other].Turn || !needs[other][i] {
				continue
			}
			return &OrderError{fmt.Sprintf("%s and %s wait for each other: one wants what the other one has, and they take turns. "+
				"Give one of them another one for now and apply that; then the one that it is to have",
				o.plan.Changes[i].Address, o.plan.Changes[other].Address)}
		}
	}
	return nil
}

// maxUnavailable is how many instances of a for_each may be down at a time.
func maxUnavailable(policy cty.Value) int {
	v := attribute(attribute(policy, "rollout"), "max_unavailable")
	if v == cty.NilVal || v.IsNull() || !v.IsKnown() {
		return 1
	}
	most, _ := v.AsBigFloat().Int64()
	return max(int(most), 1)
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
