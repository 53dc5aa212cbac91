package planner

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// The operations that the executor does alone: they write the record.
const (
	OpRecord = "record" // take the change's values into the record
	OpForget = "forget" // drop the record
	OpSettle = "settle" // an interrupted step of an earlier run is dealt with
)

// OrderError says that no order of the steps exists.
type OrderError struct{ Reason string }

// Error returns the reason.
func (e *OrderError) Error() string { return e.Reason }

// Order asks the providers for the steps of every change and puts them in order
// (DESIGN.md, rule 11). It is pure. Steps are numbered so that each comes after
// those it waits for, else by phase and address. Its error is an *OrderError,
// or says what a provider could not make of a change.
func Order(d Delta, w *World) (*Plan, error) {
	o := orderer{plan: &Plan{Project: d.Project, Serial: d.Serial, Changes: d.Changes, Findings: slices.Clone(d.Findings)}, world: w}
	for i := range o.plan.Changes {
		if err := o.steps(i, interrupted(d.Findings, o.plan.Changes[i].Address)); err != nil {
			return nil, err
		}
	}
	if err := o.claims(); err != nil {
		return nil, err
	}
	o.dependencies()
	o.rollouts()
	if err := o.number(); err != nil {
		return nil, err
	}
	slices.SortFunc(o.plan.Findings, compareFindings)
	o.plan.Summary = summarise(o.plan.Changes)
	return o.plan, nil
}

type orderer struct {
	plan  *Plan
	world *World
	nodes []*node
}

// node is a step before it has a number.
type node struct {
	step  Step
	index int // within its change
	after map[*node]bool
}

func (n *node) wait(other *node) {
	if n != other {
		n.after[other] = true
	}
}

// steps adds the steps of one change, with the edges inside of it.
func (o *orderer) steps(change int, settle bool) error {
	c := &o.plan.Changes[change]
	if c.Blocked != nil {
		return nil
	}
	var made []providers.Step
	// What is forgotten may have left remains, unless it became somebody else's.
	if c.Action != providers.NoOp && c.Action != providers.Adopt && (c.Action != providers.Forget || c.ID != "") {
		var err error
		made, err = o.world.System(c.System).Provider.Steps(c.Change)
		var refusal *providers.Refusal
		if errors.As(err, &refusal) {
			c.Blocked = &Block{Kind: Blocked, Reason: refusal.Reason, Next: refusal.Next}
			return nil
		}
		if err != nil {
			return fmt.Errorf("plan the steps of %s: %w", c.Address, err)
		}
	}
	if slices.ContainsFunc(made, TakesDown) && o.busy(c) {
		return nil
	}
	var own []*node
	add := func(s providers.Step, alone bool) {
		n := &node{step: Step{Step: s, Change: change, Record: alone}, index: len(own), after: map[*node]bool{}}
		for _, i := range s.After {
			n.wait(own[i])
		}
		own = append(own, n)
	}
	for _, s := range made {
		add(s, false)
	}
	for _, op := range o.alone(c, made, settle) {
		s := providers.Step{
			Op: op, Phase: providers.PhaseTidy, Address: c.Address, Object: c.ID, Name: c.Name,
			Class: providers.Contractual, Risk: providers.NoRisk,
		}
		for i := range own {
			s.After = append(s.After, i)
		}
		add(s, true)
	}
	o.nodes = append(o.nodes, own...)
	return nil
}

// alone lists the operations on a change's record that no provider's step
// brings with it.
func (o *orderer) alone(c *Change, made []providers.Step, settle bool) []string {
	var ops []string
	writes := slices.ContainsFunc(made, func(s providers.Step) bool {
		return s.Phase == providers.PhaseMake || s.Phase == providers.PhaseChange
	})
	switch c.Action {
	case providers.Forget:
		if len(made) == 0 {
			ops = append(ops, OpForget)
		}
	case providers.Adopt:
		ops = append(ops, OpRecord)
	case providers.Update, providers.Start, providers.Stop, providers.RestartIt, providers.Recover:
		if !writes && (len(c.Edits) > 0 || c.recordIsBehind() || c.policyChanged() || c.Action == providers.Update) {
			ops = append(ops, OpRecord)
		}
	case providers.Create, providers.ReplaceIt, providers.Destroy, providers.NoOp:
	}
	if settle {
		ops = append(ops, OpSettle)
	}
	return ops
}

// recordIsBehind reports whether the record does not know of the object what its
// mark says: an earlier run made it, and did not come to saying so.
func (c *Change) recordIsBehind() bool {
	return c.Record == nil || c.Record.Reserved || c.Generation > c.Record.Generation
}

func interrupted(findings []providers.Finding, a spec.Address) bool {
	return slices.ContainsFunc(findings, func(f providers.Finding) bool {
		return f.Kind == providers.FindInterrupted && f.Address == a
	})
}

// claims orders who frees a claim before who takes it, or one that overlaps it
// (rule 11 d). A claim that somebody outside of this plan holds blocks its taker.
func (o *orderer) claims() error {
	takers, freers := map[claimGroup][]claimant{}, map[claimGroup][]claimant{}
	for _, n := range o.nodes {
		for _, c := range n.step.Takes {
			group := claimGroup{o.plan.Changes[n.step.Change].System, c.Group()}
			if err := alone(n, c, takers[group]); err != nil {
				return err
			}
			takers[group] = append(takers[group], claimant{c, n})
		}
		for _, c := range n.step.Frees {
			group := claimGroup{o.plan.Changes[n.step.Change].System, c.Group()}
			freers[group] = append(freers[group], claimant{c, n})
		}
	}
	blocked := map[int]bool{}
	for _, group := range slices.SortedFunc(maps.Keys(takers), compareGroups) {
		for _, taker := range takers[group] {
			change := &o.plan.Changes[taker.node.step.Change]
			for _, freer := range freers[group] {
				if freer.claim.Overlaps(taker.claim) {
					taker.node.wait(freer.node)
				}
			}
			if holder, held := o.holder(group, taker, freers[group]); holder != nil && change.Blocked == nil {
				change.Blocked = &Block{
					Kind:   Blocked,
					Reason: fmt.Sprintf("%s is held by %s", taker.claim, describe(o.world.System(group.system), holder)),
					Next:   []string{"choose another in the block of " + change.Address.String() + ", or free it first"},
				}
				if held != taker.claim {
					change.Blocked.Reason += " as " + held.Key
				}
				blocked[taker.node.step.Change] = true
			}
		}
	}
	o.nodes = slices.DeleteFunc(o.nodes, func(n *node) bool { return blocked[n.step.Change] })
	for _, n := range o.nodes {
		maps.DeleteFunc(n.after, func(m *node, _ bool) bool { return blocked[m.step.Change] })
	}
	return nil
}

// alone fails if somebody else takes what n takes.
func alone(n *node, c providers.Claim, takers []claimant) error {
	for _, other := range takers {
		switch {
		case other.node.step.Address == n.step.Address || !other.claim.Overlaps(c):
		case other.claim == c:
			return &OrderError{fmt.Sprintf("%s and %s both want %s: change one of them", other.node.step.Address, n.step.Address, c)}
		default:
			return &OrderError{fmt.Sprintf("%s wants %s and %s wants %s, and only one can have both: change one of them",
				other.node.step.Address, other.claim, n.step.Address, c)}
		}
	}
	return nil
}

type claimant struct {
	claim providers.Claim
	node  *node
}

// claimGroup is of claims that can overlap, on one system.
type claimGroup struct {
	system string
	claim  providers.Claim
}

func compareGroups(a, b claimGroup) int {
	return cmp.Or(cmp.Compare(a.system, b.system), cmp.Compare(a.claim.Kind, b.claim.Kind), cmp.Compare(a.claim.Key, b.claim.Key))
}

// holder is the object, other than the taker's own, that holds now what it
// takes, and that no step frees; and the claim by which it does.
func (o *orderer) holder(group claimGroup, taker claimant, freers []claimant) (*providers.Object, providers.Claim) {
	change := &o.plan.Changes[taker.node.step.Change]
	objects := o.world.System(group.system).Inventory.Objects
	for i := range objects {
		obj := &objects[i]
		if obj.ID == change.ID || change.Object != nil && obj.ID == change.Object.ID {
			continue
		}
		for _, held := range obj.Holds {
			if !held.Overlaps(taker.claim) || slices.ContainsFunc(freers, func(f claimant) bool { return f.claim == held }) {
				continue
			}
			return obj, held
		}
	}
	return nil, providers.Claim{}
}

// dependencies orders what uses something after it on the way up, and before it
// on the way down (rule 11 b).
func (o *orderer) dependencies() {
	byAddress := map[spec.Address][]*node{}
	for _, n := range o.nodes {
		byAddress[n.step.Address] = append(byAddress[n.step.Address], n)
	}
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		for _, used := range usedBy(c) {
			leaves := removes(byAddress[used])
			for _, n := range byAddress[c.Address] {
				for _, m := range byAddress[used] {
					switch {
					case rises(n) && rises(m):
						n.wait(m)
					case leaves && sinks(n) && sinks(m):
						m.wait(n)
					}
				}
			}
		}
	}
}

// usedBy is what a change's address uses, or used when it was last applied.
func usedBy(c *Change) []spec.Address {
	all := slices.Clone(c.Uses)
	if c.Record != nil {
		all = append(all, c.Record.Uses...)
	}
	slices.SortFunc(all, spec.Address.Compare)
	return slices.Compact(all)
}

func removes(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool { return n.step.Phase == providers.PhaseRemove })
}

// sinks reports whether a step takes something down or away.
func sinks(n *node) bool {
	switch n.step.Phase {
	case providers.PhaseRelease, providers.PhaseDown, providers.PhaseRemove:
		return true
	case providers.PhaseRecover, providers.PhaseReserve, providers.PhaseMake, providers.PhaseChange,
		providers.PhaseUp, providers.PhaseReady, providers.PhaseResume, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(n.step.Phase))
}

// rises reports whether a step makes something or brings it up.
func rises(n *node) bool {
	switch n.step.Phase {
	case providers.PhaseReserve, providers.PhaseMake, providers.PhaseChange, providers.PhaseUp,
		providers.PhaseReady, providers.PhaseResume:
		return true
	case providers.PhaseRecover, providers.PhaseRelease, providers.PhaseDown, providers.PhaseRemove, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(n.step.Phase))
}

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

// number sorts the steps, so that each comes after those it waits for, and turns
// edges between nodes into step IDs.
func (o *orderer) number() error {
	waiting, next := map[*node]int{}, map[*node][]*node{}
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
		return &OrderError{"these steps wait for each other: " + names(waiting)}
	}
	return nil
}

// queue holds steps that could be next, the first in the order of the plan on top.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool { return compareNodes(q[i], q[j]) < 0 }
func (q *queue) Push(n any)        { *q = append(*q, n.(*node)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func compareNodes(a, b *node) int {
	return cmp.Or(cmp.Compare(slices.Index(providers.Phases(), a.step.Phase), slices.Index(providers.Phases(), b.step.Phase)),
		a.step.Address.Compare(b.step.Address), cmp.Compare(a.index, b.index))
}

func names(nodes map[*node]int) string {
	var all []string
	for _, n := range slices.SortedFunc(maps.Keys(nodes), compareNodes) {
		all = append(all, n.step.Op+" "+n.step.Address.String())
	}
	return strings.Join(all, ", ")
}

func summarise(changes []Change) Summary {
	s := Summary{Actions: map[providers.Action]int{}}
	for i := range changes {
		c := &changes[i]
		if c.Blocked == nil {
			s.Actions[c.Action]++
			continue
		}
		switch c.Blocked.Kind {
		case Blocked:
			s.Blocked++
		case Refused:
			s.Refused++
		case Unknown:
			s.Unknown++
		}
	}
	return s
}
