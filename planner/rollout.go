package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// turns lets the restarts and replacements within one for_each wait for each other, so that at
// most rollout.max_unavailable are under way, by default one. It also lets a conditional change
// wait for the changes that it refers to: edge 7. It leaves out an edge that would close a
// circle: instances that exchange claims go down together. If the block sets a rollout, turns
// blocks the change instead and reports true: the order then begins anew.
func (o *orderer) turns() bool {
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		c.Turn, c.Conditional = spec.Address{}, o.conditional[i]
		if o.active(i) && c.Conditional && !o.waitsForValue(i) {
			c.Conditional = false // it goes down anyway
		}
	}
	lanes := map[spec.Address][][]int{} // of a block: the changes that the next one waits for, lane by lane
	count := map[spec.Address]int{}
	for _, i := range o.takingTurns() {
		c := &o.plan.Changes[i]
		c.Turn = c.Address.Block()
		most := maxUnavailable(c.Policy)
		if lanes[c.Turn] == nil {
			lanes[c.Turn] = make([][]int, most)
		}
		lane := &lanes[c.Turn][count[c.Turn]%len(lanes[c.Turn])]
		count[c.Turn]++
		next := []int{i}
		for _, before := range *lane {
			if o.turnAfter(i, before) || writesRollout(c) && o.yield(i) && o.turnAfter(i, before) {
				continue
			}
			if writesRollout(c) {
				return o.block(i, Block{
					Cause: CauseRollout,
					Problem: providers.Refuse(
						fmt.Sprintf("%s and %s have to be down at once, since one frees what the other takes: rollout.max_unavailable = %d forbids that",
							o.plan.Changes[before].Address, c.Address, most),
						providers.Say("set a larger rollout.max_unavailable in the block of "+c.Turn.String()+", or remove the rollout block, for this apply")),
				})
			}
			next = append(next, before)
		}
		*lane = next
	}
	return false
}

// takingTurns lists the changes that take turns, by address, except that a change comes after the
// changes that it waits for.
func (o *orderer) takingTurns() []int {
	var order []int
	seen := map[int]bool{}
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		var first []int
		for _, n := range o.own[i] {
			for m := range n.after {
				first = append(first, m.step.Change)
			}
		}
		slices.Sort(first)
		for _, j := range slices.Compact(first) {
			visit(j)
		}
		c := &o.plan.Changes[i]
		if c.Address.Key != "" && len(o.own[i]) > 0 && o.active(i) && (c.Action == providers.RestartIt || c.Action == providers.ReplaceIt) {
			order = append(order, i)
		}
	}
	for i := range o.plan.Changes {
		visit(i)
	}
	return order
}

// turn returns the steps of a change and of the changes inside of it. By edge 3, the objects that
// it uses wait for it.
func (o *orderer) turn(i int) []*node {
	all := slices.Clone(o.own[i])
	for _, j := range o.inside[i] {
		all = append(all, o.own[j]...)
	}
	return all
}

// turnAfter lets the turn of a change begin after that of another one has ended. It
// changes nothing and reports false where that would close a circle.
func (o *orderer) turnAfter(i, before int) bool { return waitAll(o.turn(i), o.turn(before)) }

// yield lets the steps that wait for a turn only because a record names their address run before
// it, as they would without the change. It reports whether it took back any wait.
func (o *orderer) yield(i int) bool {
	any := false
	for _, n := range o.turn(i) {
		for _, m := range o.yielding[n] {
			m.unwait(n)
			any = true
		}
		delete(o.yielding, n)
	}
	return any
}

// waitsForValue lets a change, with the changes inside of it, begin once the changes that it
// refers to are up. It changes nothing and reports false if that would close a circle.
func (o *orderer) waitsForValue(i int) bool {
	var before []*node
	for _, j := range o.nearest(o.plan.Changes[i].Address) {
		for _, m := range o.own[j] {
			if m.rises() {
				before = append(before, m)
			}
		}
	}
	return waitAll(o.turn(i), before)
}

// waitAll lets every step of some wait for every step of others, unless one of the
// others waits for one of them already.
func waitAll(some, others []*node) bool {
	targets := map[*node]bool{}
	for _, n := range others {
		targets[n] = true
	}
	seen := map[*node]bool{}
	var leads func(*node) bool
	leads = func(n *node) bool {
		if targets[n] {
			return true
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		return slices.ContainsFunc(n.next, leads)
	}
	if slices.ContainsFunc(some, leads) {
		return false
	}
	for _, n := range some {
		for _, m := range others {
			n.wait(m)
		}
	}
	return true
}

// writesRollout reports whether the block of a change sets rollout.max_unavailable. Blocks of some kinds have no rollout:
// a workspace goes down with the VM around it.
func writesRollout(c *Change) bool {
	return c.Want != nil && ctyread.Has(c.Policy, "rollout") && !slices.ContainsFunc(c.Want.Defaults, func(d spec.Default) bool { return d.Path == "rollout.max_unavailable" })
}

// maxUnavailable returns how many instances of a for_each may be down at a time.
func maxUnavailable(policy cty.Value) int {
	return max(int(ctyread.Uint(ctyread.Attr(policy, "rollout"), "max_unavailable")), 1)
}
