package planner

import (
	"fmt"
	"slices"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// dirtReason says which work of an object exists nowhere else, or why that is not known; "": there is none.
func dirtReason(o *providers.Object) string {
	if o == nil {
		return ""
	}
	var all []string
	if why := o.Unreadable["dirty"]; why != "" {
		all = append(all, "it could not be read whether it has work that exists nowhere else: "+why)
	}
	for _, d := range o.Dirty {
		all = append(all, d.String())
	}
	return strings.Join(all, "; ")
}

// dirtyBlocks blocks the end of each object with work that exists nowhere else, unless the user lets that work go. What the
// object is inside of stays, too: insideBlocks sees to it.
func (o *orderer) dirtyBlocks() bool {
	again := false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		why := dirtReason(c.Object)
		if why == "" || c.Discards || !o.active(i) || !removes(o.steps(i)) && (c.with == spec.Address{}) && !o.isLetGoInside(i) || savesFirst(o.steps(i)) {
			continue
		}
		again = o.block(i, Block{Cause: CauseDirty, Problem: providers.Refuse("it has work that exists nowhere else: "+why, dirtyNext(c))}) || again
	}
	return o.volatileBlocks() || o.uncheckedBlocks() || o.unseenBlocks() || again
}

// isLetGoInside reports whether a change lets go of an object that goes with what it is inside of.
func (o *orderer) isLetGoInside(i int) bool {
	return o.plan.Changes[i].Action == providers.Forget && !o.staysAround(i)
}

// savesFirst reports whether steps save the work in an object before they remove it.
func savesFirst(steps []providers.Step) bool {
	return slices.ContainsFunc(steps, func(s providers.Step) bool { return s.Saves })
}

// volatileBlocks blocks taking down each object whose inside is lost then, while something inside of it has such work.
func (o *orderer) volatileBlocks() bool {
	again := false
	for _, i := range o.inwards {
		c := &o.plan.Changes[i]
		why := dirtReason(c.Object)
		if why == "" || c.Discards {
			continue
		}
		for j := range o.around(i) {
			if o.isLostIn(j) {
				again = o.block(j, Block{Cause: CauseDirty, Problem: providers.Refuse(
					fmt.Sprintf("its root is in memory, and %s inside of it has work that exists nowhere else: %s", c.Address, why), dirtyNext(c))}) || again
			}
		}
	}
	return again
}

// uncheckedBlocks blocks the end of each object that is off and may have such work inside of it.
func (o *orderer) uncheckedBlocks() bool {
	again := false
	for _, i := range o.inwards {
		c := &o.plan.Changes[i]
		shape, _ := spec.Shape(c.Kind)
		system := o.world.System(c.System)
		if !shape.Work || c.Record == nil || system.sleep != starting && system.sleep != resting || o.delta.options.Allow.Dirty[c.Address] {
			continue
		}
		for j := range o.around(i) {
			if removes(o.steps(j)) {
				again = o.block(j, o.unchecked(c, system.off)) || again
			}
		}
	}
	return again
}

// unchecked returns the block that keeps an object which may have such work, and whose inside is not read.
func (o *orderer) unchecked(c *Change, off spec.Address) Block {
	next := append(startFirst(off), o.wakeFirst()...)
	return Block{Cause: CauseDirty, Wake: off, Problem: providers.Refuse(
		fmt.Sprintf("%s is off: nobody can see whether %s has work that exists nowhere else", off, c.Address),
		append(next, losing(c)...))}
}

// wakeFirst returns the advice to let the same command start what is off.
func (o *orderer) wakeFirst() []providers.Advice {
	command := "apply"
	if o.delta.options.Destroy {
		command = "destroy"
	}
	return providers.SayVmctl("or have it started and looked into: ", command, "--wake")
}

// Sleepers lists the objects that are off and would have to be started to see whether what is to be removed has work that exists
// nowhere else.
func (p *Plan) Sleepers() []spec.Address {
	var all []spec.Address
	for i := range p.Changes {
		if b := p.Changes[i].Blocked; b != nil && (b.Wake != spec.Address{}) && !slices.Contains(all, b.Wake) {
			all = append(all, b.Wake)
		}
	}
	return all
}

func dirtyNext(c *Change) []providers.Advice {
	if shape, _ := spec.Shape(c.Kind); !shape.Work {
		return losing(c)
	}
	if c.Record == nil && c.Want == nil {
		return append(providers.Say("put its block back, and apply: its commits can be fetched then"), losing(c)...)
	}
	return append(providers.SayVmctl("commit it there, and fetch the commits: ", string(c.Kind), "fetch", c.Address.String()), losing(c)...)
}

func losing(c *Change) []providers.Advice {
	return providers.Say("or lose it: --allow-dirty=" + shellword.Quote(c.Address.String()))
}

// findDirty adds a finding for each object that ends with work which exists nowhere else.
func (o *orderer) findDirty() {
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		ends := slices.ContainsFunc(o.own[i], func(n *node) bool { return n.step.Phase == providers.PhaseRemove }) || (c.with != spec.Address{}) && o.active(i)
		if c.Object == nil || !ends || dirtReason(c.Object) == "" {
			continue
		}
		f := providers.Finding{Kind: providers.FindDirty, Address: c.Address, Object: c.Name, Action: "lost, as --allow-dirty says"}
		if savesFirst(o.steps(i)) && !c.Discards {
			f.Action = "brought to this host first, as its block says"
		}
		if why := c.Object.Unreadable["dirty"]; why != "" {
			f.Evidence = append(f.Evidence, "not everything could be read: "+why)
		}
		for _, d := range c.Object.Dirty {
			for _, item := range d.Items {
				f.Evidence = append(f.Evidence, d.Sort+": "+item)
			}
		}
		o.plan.Findings = append(o.plan.Findings, f)
	}
}
