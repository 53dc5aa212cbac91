package planner

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// conclude completes the plan: it settles the action of every change, removes the changes without
// steps that are deferred or out of scope, and sums up.
func (o *orderer) conclude() {
	o.skip()
	o.findBusy()
	o.findDirty()
	o.warnUnreleased()
	o.warnUnreached()
	o.findReach()
	p := o.plan
	kept := make([]Change, 0, len(p.Changes))
	moved := make([]int, len(p.Changes)) // the new index of each change; -1: it was removed
	for i := range p.Changes {
		p.Changes[i].Provisions = p.Changes[i].provisions()
		c := p.Changes[i]
		if o.active(i) && o.goesAlong(i) {
			c.Reason = "others use it: it goes with what is around its engine"
		}
		until, late := o.late[i]
		why, idle := o.idle[i]
		moved[i] = -1
		released := slices.ContainsFunc(o.own[i], func(n *node) bool { return n.step.Phase == providers.PhaseRelease })
		switch {
		case c.Blocked != nil:
		case late || idle || o.delta.Aside[c.Address] || c.Action == providers.NoOp:
			if late || idle {
				c.Reason = why
			}
			c.Inapplicable = idle && o.world.System(c.Aim().System).IsInapplicable()
			if released {
				c.Action, c.Reason, c.ID, c.Change.Want = providers.Release, fmt.Sprintf("%s goes down", p.Changes[o.lowered(i)].Address), c.Object.ID, cty.NilVal
			} else if late || idle {
				c.Action = providers.NoOp
			}
			c.Edits, c.Mark, c.Rekey, c.Applies, c.Altered = nil, nil, nil, "", false
		}
		if late {
			p.Deferred = append(p.Deferred, Deferred{Address: c.Address, Until: until})
		}
		if len(o.own[i]) == 0 && (late || o.delta.Aside[c.Address]) {
			continue
		}
		moved[i] = len(kept)
		kept = append(kept, c)
	}
	p.Changes = kept
	for i := range p.Steps {
		p.Steps[i].Change = moved[p.Steps[i].Change]
	}
	slices.SortFunc(p.Findings, compareFindings)
	p.Summary = summarise(p.Changes)
	p.Summary.Deferred = len(p.Deferred)
}

// warnUnreleased warns of objects that are not released before what they are inside of goes down,
// because they could not be read.
func (o *orderer) warnUnreleased() {
	for _, i := range o.inwards {
		c := &o.plan.Changes[i]
		if j := o.lowered(i); c.unread && c.Record != nil && j >= 0 {
			above := &o.plan.Changes[j]
			above.Warnings = append(slices.Clip(above.Warnings), fmt.Sprintf("%s is inside of it and could not be read: it is not released before", c.Address))
		}
	}
}

func summarise(changes []Change) Summary {
	s := Summary{Actions: map[providers.Action]int{}}
	for i := range changes {
		c := &changes[i]
		if c.Blocked == nil && c.Inapplicable && c.Action == providers.NoOp {
			s.Inapplicable++
			continue
		}
		if c.Blocked == nil {
			s.Actions[c.Action]++
			continue
		}
		switch c.Blocked.Kind() {
		case Blocked:
			s.Blocked++
		case Refused:
			s.Refused++
		case Unknown:
			s.Unknown++
		case Retained:
			s.Retained++
		case Skipped:
			s.Skipped++
		}
	}
	return s
}
