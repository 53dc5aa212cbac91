package planner

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// The operations that the executor does alone: they write the record.
const (
	OpRecord = "record" // take the change's values into the record
	OpForget = "forget" // drop the record
	OpSettle = "settle" // an interrupted step of an earlier run is dealt with
)

// Order asks the providers for the steps of every change and puts them in order
// (DESIGN.md, rule 11). It is pure.
//
// Order first blocks changes until no more are blocked: a blocked change frees, lowers and makes
// nothing. It then releases the objects inside of each VM that a step lowers, and adds the edges,
// which form no circle. It numbers the steps so that each comes after the steps that it waits
// for, else by phase and address. An error is a bug.
func Order(d Delta, w *World) (*Plan, error) {
	o := newOrderer(d, w)
	for i := range o.plan.Changes {
		o.ask(i)
	}
	for {
		o.settle()
		if !o.build() {
			continue
		}
		o.edges()
		if !o.turns() {
			break
		}
	}
	if o.delta.options.NoWait {
		o.skipWaits()
	}
	if err := o.number(); err != nil {
		return nil, err
	}
	o.conclude()
	return o.plan, nil
}

// orderer puts the steps of changes in order. Changes go by their index in the plan.
type orderer struct {
	plan  *Plan
	delta Delta
	world *World

	index   map[spec.Address]int
	objects map[*providers.Object]int // the change of each object
	made    [][]providers.Step        // the steps of each change, from its provider

	conditional []bool // whether Diff found each change Conditional

	begun map[spec.Address]bool // addresses of which an earlier run did not end a step
	late  map[int]spec.Address  // changes that wait for a later round, with the object that has to be ready
	idle  map[int]string        // changes that are not carried out, with the reason: what they are inside of goes down or stays off
	left  map[int]bool          // changes whose objects nobody can remove, because others use them
	nodes []*node
	own   map[int][]*node // the nodes of each change
	// yielding lists, for each step, the steps that wait for it only because its record names
	// their address. Without a change of its own the object would stay up, and they would not
	// wait.
	yielding map[*node][]*node
	inside   [][]int // the changes inside of the object of each change, at any depth
	inwards  []int   // the changes inside of other objects, the outer ones first
}

// node is a step before it has a number.
type node struct {
	step  Step
	index int // within its change
	after map[*node]bool
	next  []*node // the nodes that wait for it
}

// wait lets a step wait for another one, and reports whether that is new.
func (n *node) wait(other *node) bool {
	if n == other || n.after[other] {
		return false
	}
	n.after[other] = true
	other.next = append(other.next, n)
	return true
}

// unwait takes back a wait.
func (n *node) unwait(other *node) {
	delete(n.after, other)
	other.next = slices.DeleteFunc(other.next, func(next *node) bool { return next == n })
}

func newOrderer(d Delta, w *World) *orderer {
	o := &orderer{
		plan: &Plan{Project: d.Project, Serial: d.Serial, Changes: d.Changes, Checks: d.Checks, Findings: slices.Clone(d.Findings), Known: d.known}, delta: d, world: w,
		index: map[spec.Address]int{}, objects: map[*providers.Object]int{}, made: make([][]providers.Step, len(d.Changes)),
		begun: interrupted(d.Findings), late: map[int]spec.Address{}, idle: map[int]string{}, left: map[int]bool{}, inside: make([][]int, len(d.Changes)),
	}
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		o.index[c.Address] = i
		o.conditional = append(o.conditional, c.Conditional)
		if d.Aside[c.Address] { // it is out of scope: whether it could be made does not matter
			c.Blocked = nil
		}
		if c.Object != nil {
			o.objects[c.Object] = i
		}
	}
	for i := range o.plan.Changes {
		for j := range o.around(i) {
			o.inside[j] = append(o.inside[j], i)
		}
		if len(o.plan.Changes[i].Around) > 0 {
			o.inwards = append(o.inwards, i)
		}
	}
	depths := map[int]int{}
	slices.SortStableFunc(o.inwards, func(i, j int) int { return cmp.Compare(o.depth(i, depths), o.depth(j, depths)) })
	return o
}

// depth returns how many objects are around that of a change, where it is or where it is to be: the greater number. depths has
// those that are known. Of objects that exchange their places, one of both ways counts.
func (o *orderer) depth(i int, depths map[int]int) int {
	if n, known := depths[i]; known {
		return n
	}
	depths[i] = 0
	c, n := &o.plan.Changes[i], 0
	for _, a := range []spec.Address{c.Inside, c.Aim().Inside} {
		if parent, planned := o.index[a]; planned {
			n = max(n, 1+o.depth(parent, depths))
		}
	}
	depths[i] = n
	return n
}

// around iterates over the changes of the objects that a change is inside of, the inner ones first.
func (o *orderer) around(i int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, a := range o.plan.Changes[i].Around {
			if j, planned := o.index[a]; planned && !yield(j) {
				return
			}
		}
	}
}

// lowered returns the change that takes down or removes an object around that of a change, the
// innermost; -1: there is none.
func (o *orderer) lowered(i int) int {
	for j := range o.around(i) {
		if slices.ContainsFunc(o.steps(j), lowers) {
			return j
		}
	}
	return -1
}

// active reports whether a change is carried out in this round.
func (o *orderer) active(i int) bool {
	_, late := o.late[i]
	_, idle := o.idle[i]
	c := &o.plan.Changes[i]
	return c.Blocked == nil && !late && !idle && !o.delta.Aside[c.Address]
}

// steps returns the steps of a change that is carried out, and none for any other change.
func (o *orderer) steps(i int) []providers.Step {
	if !o.active(i) || o.goesAlong(i) {
		return nil
	}
	return o.made[i]
}

// build makes a node of every step that is carried out, with the edges inside of its
// change: rule 11, edge 1.
func (o *orderer) build() bool {
	o.nodes, o.own = nil, map[int][]*node{}
	for i := range o.plan.Changes {
		made, resume, err := o.releasing(i)
		if err != nil {
			o.keepInside(i, err)
			return false
		}
		released := len(made)
		for _, s := range o.steps(i) {
			s.After = shifted(s.After, released)
			if released > 0 && len(s.After) == 0 {
				s.After = []int{released - 1}
			}
			made = append(made, s)
		}
		o.add(i, resumed(made, resume))
	}
	return true
}

// resumed returns the steps of a change with those that resume its object, which come before its own steps bring that up: they find
// it as the plan did.
func resumed(made, resume []providers.Step) []providers.Step {
	if len(resume) == 0 {
		return made
	}
	at := slices.IndexFunc(made, func(s providers.Step) bool { return s.Phase == providers.PhaseUp || s.Phase == providers.PhaseReady })
	if at < 0 {
		at = len(made)
	}
	all := slices.Clone(made[:at])
	for _, s := range resume {
		s.After = nil
		if len(all) > 0 {
			s.After = []int{len(all) - 1}
		}
		all = append(all, s)
	}
	last := len(all) - 1
	for _, s := range made[at:] {
		after := []int{last}
		for _, j := range s.After {
			if j >= at {
				j += len(resume)
			}
			after = append(after, j)
		}
		s.After = after
		all = append(all, s)
	}
	return all
}

// skipWaits takes out the steps that wait for a condition which nothing else in the plan needs, nor what is
// planned after it.
func (o *orderer) skipWaits() {
	needed := map[spec.Address]bool{}
	for _, until := range o.late {
		needed[until] = true
	}
	o.nodes = slices.DeleteFunc(o.nodes, func(n *node) bool {
		used := slices.ContainsFunc(n.next, func(next *node) bool { return !next.step.Record })
		if n.step.Condition == "" || used || needed[n.step.Address] {
			return false
		}
		for _, next := range slices.Clone(n.next) {
			next.unwait(n)
		}
		for before := range n.after {
			n.unwait(before)
		}
		own := o.own[n.step.Change]
		o.own[n.step.Change] = slices.DeleteFunc(own, func(other *node) bool { return other == n })
		return true
	})
}

// keepInside blocks a change whose object cannot be let go of, and the changes that would take
// down what it is inside of.
func (o *orderer) keepInside(i int, err error) {
	c := &o.plan.Changes[i]
	why := providers.Unread(err)
	if refusal := (*providers.Problem)(nil); errors.As(err, &refusal) {
		why = refusal
	}
	o.block(i, Block{Cause: CauseProvider, Problem: why.Within("it cannot be released")})
	for j := range o.around(i) {
		if slices.ContainsFunc(o.steps(j), lowers) {
			o.block(j, Block{Cause: CauseInside, Problem: why.Within("%s, which is inside of it, cannot be released", c.Address)})
		}
	}
}

func shifted(all []int, by int) []int {
	moved := make([]int, len(all))
	for i := range all {
		moved[i] = all[i] + by
	}
	return moved
}

// add adds the steps of a change and the steps that the executor does alone.
func (o *orderer) add(i int, made []providers.Step) {
	c := &o.plan.Changes[i]
	var own []*node
	put := func(s providers.Step, alone bool) {
		n := &node{step: Step{Step: s, Change: i, System: c.systemOf(s), Record: alone}, index: len(own), after: map[*node]bool{}}
		for _, j := range s.After {
			n.wait(own[j])
		}
		own = append(own, n)
	}
	for _, s := range made {
		put(s, false)
	}
	for _, op := range o.alone(i) {
		s := providers.Step{
			Op: op, Words: words[op], Phase: providers.PhaseTidy, Address: c.Address, Object: c.ID, Name: c.Name,
			Class: providers.Contractual, Risk: providers.NoRisk,
		}
		for j := range own {
			s.After = append(s.After, j)
		}
		put(s, true)
	}
	o.nodes, o.own[i] = append(o.nodes, own...), own
}

// systemOf returns the key of the system in which a step of a change acts.
func (c *Change) systemOf(s providers.Step) string {
	if s.Phase.Sinks() {
		return c.System
	}
	return c.Aim().System
}

// alone lists the operations on a change's record that no provider's step brings
// with it.
func (o *orderer) alone(i int) []string {
	var ops []string
	c := &o.plan.Changes[i]
	if _, late := o.late[i]; late || c.Blocked != nil || o.delta.Aside[c.Address] {
		return nil
	}
	made := o.steps(i)
	writes := slices.ContainsFunc(made, func(s providers.Step) bool {
		return s.Phase == providers.PhaseMake || s.Phase == providers.PhaseChange
	})
	if o.active(i) {
		switch c.Action {
		case providers.Forget:
			if !removes(made) {
				ops = append(ops, OpForget)
			}
		case providers.Adopt:
			ops = append(ops, OpRecord)
		case providers.Update, providers.Import, providers.Start, providers.Stop, providers.RestartIt, providers.Recover:
			if !writes && (c.Alters() || c.recordIsBehind() || c.valuesBehind || c.policyChanged() || c.Action == providers.Update || c.Action == providers.Import) {
				ops = append(ops, OpRecord)
			}
		case providers.Destroy:
			if o.goesAlong(i) {
				ops = append(ops, OpForget)
			}
		case providers.Create, providers.ReplaceIt, providers.Release, providers.NoOp:
		}
	}
	if o.begun[c.Address] {
		ops = append(ops, OpSettle)
	}
	return ops
}

// LetsGo reports whether a change ends the record of an object that stays in the world.
func (c *Change) LetsGo() bool {
	return c.Action == providers.Forget && (c.Object != nil || c.ID == "" && (c.Inside == spec.Address{}))
}

// recordIsBehind reports whether the record is missing, only reserved, or of an older generation
// than the object's mark: an earlier run may have ended before it wrote the record.
func (c *Change) recordIsBehind() bool {
	return c.Record == nil || c.Record.Reserved || c.Object != nil && markedGeneration(c.Object) > c.Record.Generation
}

// interrupted returns the addresses of which an earlier run did not end a step.
func interrupted(findings []providers.Finding) map[spec.Address]bool {
	begun := map[spec.Address]bool{}
	for _, f := range findings {
		if f.Kind == providers.FindInterrupted {
			begun[f.Address] = true
		}
	}
	return begun
}
