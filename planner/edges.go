package planner

import (
	"iter"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// edges puts the steps of different changes in order (DESIGN.md, rule 11). Sinking steps run
// users first, by the records and the observed objects. Rising steps run dependencies first, by
// the spec. A rising step takes a claim after the sinking step that frees it. Neither order has a
// circle, and no sinking step waits for a rising one: so the edges form no circle.
func (o *orderer) edges() {
	holds, refers := o.usersFirst()
	for user, used := range each(holds) {
		for n, m := range o.sinkBefore(user, used) {
			m.wait(n)
		}
	}
	o.yielding = map[*node][]*node{}
	for user, used := range each(refers) {
		for n, m := range o.sinkBefore(user, used) {
			if m.wait(n) {
				o.yielding[n] = append(o.yielding[n], m)
			}
		}
	}
	o.riseAfter()
	o.handed()
	o.prepareFirst(refers)
}

// prepareFirst lets the users of an object, and what is around it, stay up until what takes the place of its content is prepared.
// It leaves out what would close a circle.
func (o *orderer) prepareFirst(refers map[int][]int) {
	prepares := func(n *node) bool { return n.step.Phase == providers.PhasePrepare }
	for user, used := range each(refers) {
		waitAll(o.nodesOf(user, (*node).sinks), o.nodesOf(used, prepares))
	}
	for i := range o.plan.Changes {
		prepared := o.nodesOf(i, prepares)
		for j := range o.around(i) {
			waitAll(o.nodesOf(j, func(n *node) bool { return lowers(n.step.Step) }), prepared)
		}
	}
}

// nodesOf returns the nodes of a change for which a condition is true.
func (o *orderer) nodesOf(i int, is func(*node) bool) []*node {
	return slices.DeleteFunc(slices.Clone(o.own[i]), func(n *node) bool { return !is(n) })
}

// each iterates over all pairs of changes, in order.
func each(pairs map[int][]int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for _, i := range slices.Sorted(maps.Keys(pairs)) {
			for _, j := range pairs[i] {
				if !yield(i, j) {
					return
				}
			}
		}
	}
}

// sinkBefore iterates over the pairs of steps of which the second waits for the first. A user
// sinks before the object that it uses is removed. An object inside of another one sinks before
// that is released or goes down: edges 2, 3 and 8.
func (o *orderer) sinkBefore(user, used int) iter.Seq2[*node, *node] {
	inside := slices.Contains(o.plan.Changes[user].Around, o.plan.Changes[used].Address)
	gone := slices.ContainsFunc(o.own[used], func(n *node) bool { return n.step.Phase == providers.PhaseRemove })
	return func(yield func(first, second *node) bool) {
		for _, n := range o.own[user] {
			for _, m := range o.own[used] {
				first, second := n, m
				switch {
				case n.sinks() && m.sinks() && (gone || inside && (lowers(m.step.Step) || m.step.Phase == providers.PhaseRelease)):
				case inside && n.step.Op == OpForget && m.sinks(): // the object is gone once that is
					first, second = m, n
				case inside && n.step.Op == OpForget && m.step.Op == OpForget: // the record names what is around it
				case inside && n.sinks() && o.plan.Changes[used].Action == providers.Forget: // before that is let go of
				default:
					continue
				}
				if !yield(first, second) {
					return
				}
			}
		}
	}
}

func (n *node) sinks() bool { return n.step.Phase.Sinks() }
func (n *node) rises() bool { return n.step.Phase.Rises() }

// riseAfter lets a change rise after the changes that it refers to: edge 4. It passes over
// changes without rising steps.
func (o *orderer) riseAfter() {
	for i := range o.plan.Changes {
		if !slices.ContainsFunc(o.own[i], (*node).rises) {
			continue
		}
		for _, j := range o.nearest(o.plan.Changes[i].Address) {
			for _, n := range o.own[i] {
				for _, m := range o.own[j] {
					resumes := n.step.Phase == providers.PhaseResume && m.step.Provision != "" // a script that fails leaves nothing released
					if n.rises() && m.rises() && !resumes {
						n.wait(m)
					}
				}
			}
		}
	}
}

// nearest returns the changes with rising steps that an address refers to, directly or through
// addresses that have none.
func (o *orderer) nearest(a spec.Address) []int {
	var found []int
	seen := map[spec.Address]bool{a: true}
	for todo := slices.Clone(o.delta.refers[a]); len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		if j, planned := o.index[next]; planned && slices.ContainsFunc(o.own[j], (*node).rises) {
			found = append(found, j)
			continue
		}
		todo = append(todo, o.delta.refers[next]...)
	}
	slices.Sort(found)
	return found
}

// handed lets a step that takes a claim wait for the sinking step of another change that frees
// it: edge 5.
func (o *orderer) handed() {
	takers, freers := map[claimGroup][]*node{}, map[claimGroup][]*node{}
	for _, n := range o.nodes {
		system := n.step.System
		for _, c := range n.step.Takes {
			group := groupOf(system, c)
			takers[group] = append(takers[group], n)
		}
		for _, c := range n.step.Frees {
			group := groupOf(system, c)
			freers[group] = append(freers[group], n)
		}
	}
	for group, all := range takers {
		for _, taker := range all {
			for _, freer := range freers[group] {
				if freer.step.Change != taker.step.Change && freer.sinks() && overlap(freer.step.Frees, taker.step.Takes) {
					taker.wait(freer)
				}
			}
		}
	}
}

func overlap(a, b []providers.Claim) bool {
	return slices.ContainsFunc(a, func(c providers.Claim) bool { return slices.ContainsFunc(b, c.Overlaps) })
}

// usersFirst returns the changes that each change uses. held lists the objects that a change is
// inside of and the disks that its object has. referred lists the addresses that its record names.
// Records can name each other in a circle after a run that was cut short, if depends_on was
// turned round: within a circle, referred does not count.
func (o *orderer) usersFirst() (held, referred map[int][]int) {
	hard, soft := map[int][]int{}, map[int][]int{}
	disks := o.diskChanges()
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		hard[i] = slices.AppendSeq(hard[i], o.around(i))
		if c.Object != nil {
			for _, claim := range c.Object.Holds {
				if disk, planned := disks[claimGroup{c.System, claim}]; planned && disk != i {
					hard[i] = append(hard[i], disk)
				}
			}
		}
		for _, a := range c.lastUses() {
			if j, planned := o.index[a]; planned && j != i {
				soft[i] = append(soft[i], j)
			}
		}
	}
	circle := circles(len(o.plan.Changes), hard, soft)
	for i, all := range soft {
		soft[i] = slices.DeleteFunc(all, func(j int) bool { return circle[i] == circle[j] })
	}
	return hard, soft
}

// diskChanges returns the change of each disk by the claim on the disk.
func (o *orderer) diskChanges() map[claimGroup]int {
	all := map[claimGroup]int{}
	for i := range o.plan.Changes {
		if c := &o.plan.Changes[i]; natures[c.Kind].isDisk && c.Object != nil {
			all[claimGroup{c.System, providers.Claim{Kind: providers.ClaimDisk, Key: string(c.Object.ID)}}] = i
		}
	}
	return all
}

// lastUses returns the addresses that the record of a change names, or its Needs if it has no
// record.
func (c *Change) lastUses() []spec.Address {
	if c.Record != nil {
		return c.Record.Uses
	}
	return c.Needs
}

// circles numbers the changes. Changes that lead to each other get the same number (Tarjan's
// strongly connected components).
func circles(count int, edges ...map[int][]int) []int {
	t := tarjan{edges: edges, number: make([]int, count), low: make([]int, count), circle: make([]int, count), on: make([]bool, count)}
	for i := range count {
		if t.number[i] == 0 {
			t.visit(i)
		}
	}
	return t.circle
}

type tarjan struct {
	edges       []map[int][]int
	number, low []int
	circle      []int
	on          []bool
	stack       []int
	next, found int
}

func (t *tarjan) visit(i int) {
	t.next++
	t.number[i], t.low[i], t.on[i] = t.next, t.next, true
	t.stack = append(t.stack, i)
	for _, edges := range t.edges {
		for _, j := range edges[i] {
			switch {
			case t.number[j] == 0:
				t.visit(j)
				t.low[i] = min(t.low[i], t.low[j])
			case t.on[j]:
				t.low[i] = min(t.low[i], t.number[j])
			}
		}
	}
	if t.low[i] != t.number[i] {
		return
	}
	t.found++
	for {
		j := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.on[j], t.circle[j] = false, t.found
		if j == i {
			return
		}
	}
}
