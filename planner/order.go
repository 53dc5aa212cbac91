package planner

import (
	"errors"
	"fmt"
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

// OrderError says that no order of the steps exists.
type OrderError struct{ Reason string }

// Error returns the reason.
func (e *OrderError) Error() string { return e.Reason }

// Order asks the providers for the steps of every change and puts them in order
// (DESIGN.md, rule 11). It is pure. Steps are numbered so that each comes after
// those it waits for, else by phase and address. Its error is an *OrderError,
// or says what a provider could not make of a change.
func Order(d Delta, w *World) (*Plan, error) {
	o := orderer{
		plan:  &Plan{Project: d.Project, Serial: d.Serial, Changes: d.Changes, Findings: slices.Clone(d.Findings), Deferred: d.Deferred},
		world: w,
	}
	begun := interrupted(d.Findings)
	for i := range o.plan.Changes {
		if err := o.steps(i, begun[o.plan.Changes[i].Address]); err != nil {
			return nil, err
		}
	}
	if err := o.claims(); err != nil {
		return nil, err
	}
	o.dependencies()
	if err := o.rollouts(); err != nil {
		return nil, err
	}
	if err := o.number(); err != nil {
		return nil, err
	}
	slices.SortFunc(o.plan.Findings, compareFindings)
	o.plan.Summary = summarise(o.plan.Changes)
	o.plan.Summary.Deferred = len(d.Deferred)
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
	if c.Action == providers.Release && len(made) == 0 {
		c.Action = providers.NoOp
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
	case providers.Update, providers.Import, providers.Start, providers.Stop, providers.RestartIt, providers.Recover:
		if !writes && (len(c.Edits) > 0 || c.recordIsBehind() || c.policyChanged() || c.Action == providers.Update || c.Action == providers.Import) {
			ops = append(ops, OpRecord)
		}
	case providers.Create, providers.ReplaceIt, providers.Destroy, providers.Release, providers.NoOp:
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

// interrupted are the addresses of which an earlier run did not end a step.
func interrupted(findings []providers.Finding) map[spec.Address]bool {
	begun := map[spec.Address]bool{}
	for _, f := range findings {
		if f.Kind == providers.FindInterrupted {
			begun[f.Address] = true
		}
	}
	return begun
}

// dependencies orders what uses something after it on the way up, and before it
// on the way down where that is removed (rule 11 b), or is a VM that this is inside
// of (rule 11 c).
func (o *orderer) dependencies() {
	byAddress := map[spec.Address][]*node{}
	for _, n := range o.nodes {
		byAddress[n.step.Address] = append(byAddress[n.step.Address], n)
	}
	o.heirs(byAddress)
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		for _, used := range usedBy(c) {
			leaves := removes(byAddress[used]) || used == c.Inside
			for _, n := range byAddress[c.Address] {
				for _, m := range byAddress[used] {
					switch {
					case rises(n) && rises(m):
						n.wait(m)
					case leaves && sinks(n) && sinks(m):
						m.wait(n)
					case used == c.Inside && n.step.Op == OpForget && sinks(m): // it is gone once the VM is
						n.wait(m)
					}
				}
			}
		}
	}
}

// heirs lets who gets the name of another object be made after that is gone.
func (o *orderer) heirs(byAddress map[spec.Address][]*node) {
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		for _, m := range byAddress[c.heirOf] {
			for _, n := range byAddress[c.Address] {
				if m.step.Phase == providers.PhaseRemove && n.step.Phase == providers.PhaseMake {
					n.wait(m)
				}
			}
		}
	}
}

// usedBy is what a change's address uses, or used when it was last applied.
func usedBy(c *Change) []spec.Address {
	all := slices.Clone(c.Needs)
	if c.Record != nil {
		all = append(all, c.Record.Uses...)
	}
	if (c.Inside != spec.Address{}) {
		all = append(all, c.Inside)
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
		providers.PhaseUp, providers.PhaseReady, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(n.step.Phase))
}

// rises reports whether a step makes something or brings it up.
func rises(n *node) bool {
	switch n.step.Phase {
	case providers.PhaseReserve, providers.PhaseMake, providers.PhaseChange, providers.PhaseUp,
		providers.PhaseReady:
		return true
	case providers.PhaseRecover, providers.PhaseRelease, providers.PhaseDown, providers.PhaseRemove, providers.PhaseTidy:
		return false
	}
	panic("unknown phase " + string(n.step.Phase))
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
