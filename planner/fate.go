package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// fates decides about the changes inside of objects that go down, come up or stay off, and about
// the changes that depend on deferred ones. An object shares the fate of what it is inside of,
// so that the outer ones are decided first. It begins anew each time, from the changes that are
// not blocked. It reports whether it changed anything.
func (o *orderer) fates() bool {
	late, idle := o.late, o.idle
	o.late, o.idle = map[int]spec.Address{}, map[int]string{}
	again := false
	for _, i := range o.inwards {
		if o.plan.Changes[i].Blocked == nil {
			again = o.fate(i) || again
		}
	}
	o.outlasted()
	again = o.stranded() || again
	again = o.waiters() || again
	return again || !maps.Equal(late, o.late) || !maps.Equal(idle, o.idle)
}

// outlasted defers the end of each object around one that leaves it, and has to wait for the place to which it goes.
func (o *orderer) outlasted() {
	for _, i := range o.inwards {
		until, late := o.late[i]
		if !late || o.plan.Changes[i].To == nil {
			continue
		}
		for j := range o.around(i) {
			if o.abandons(j) && o.plan.Changes[j].Address != until {
				o.wait(j, until)
			}
		}
	}
}

// stranded blocks a change that needs a value of an object which is not made because what it is
// inside of is off. It reports whether it blocked anything.
func (o *orderer) stranded() bool {
	again := false
	if len(o.idle) == 0 || o.delta.options.Destroy {
		return false
	}
	referring := inverse(o.delta.refers)
	for _, i := range slices.Sorted(maps.Keys(o.idle)) {
		c := &o.plan.Changes[i]
		if c.Record != nil || c.Want == nil {
			continue
		}
		for _, a := range referring[c.Address] {
			j, planned := o.index[a]
			if !planned || !o.active(j) || !o.awaits(j, c.Address) {
				continue
			}
			why, next := fmt.Sprintf("it refers to %s, which is made once %s runs", c.Address, c.Inside), fmt.Sprintf("write running = true into %s, or leave out the reference", c.Inside)
			if in := o.world.System(c.Aim().System); in.setting != "" {
				why = fmt.Sprintf("it refers to %s, which is not made while %s has %s", c.Address, in.off, in.setting)
				next = fmt.Sprintf("write another %s into %s, or leave out the reference", settingName(in.off.Kind), in.off)
			}
			again = o.block(j, Block{Cause: CauseOff, Problem: providers.Refuse(why, providers.Say(next))}) || again
		}
	}
	return again
}

// awaits reports whether a change wants a value that is not known yet, and refers to an
// address.
func (o *orderer) awaits(i int, a spec.Address) bool {
	c := &o.plan.Changes[i]
	return c.Change.Want != cty.NilVal && !c.Change.Want.IsWhollyKnown() && c.Want != nil && slices.Contains(c.Want.Takes, a)
}

// fate decides whether a change inside of an object is carried out, deferred or left idle. It
// reports whether it blocked the change or gave it another action.
func (o *orderer) fate(i int) bool {
	c := &o.plan.Changes[i]
	if c.along && c.Action == providers.Destroy && o.staysAround(i) {
		o.idle[i] = fmt.Sprintf("%s stays, and it is left alone", c.Inside)
		return false
	}
	if o.world.System(c.System).sleep == resting {
		parent, planned := o.index[c.Inside]
		action := o.plan.Changes[parent].Action
		return o.resting(i, planned && o.active(parent) && (action == providers.Destroy || action == providers.Forget))
	}
	if o.world.System(c.System).IsInapplicable() {
		return o.inapplicable(i)
	}
	if c.To == nil || o.world.System(c.System).sleep != "" {
		o.reach(i, c.Place, c.Object == nil || (c.with != spec.Address{}))
		return o.staysSwitching(i) || o.staysShutIn(i)
	}
	o.reach(i, *c.To, true) // it is taken out of the place where it is before anything happens to that
	return false
}

// staysAround reports whether nothing around the object of a change is removed.
func (o *orderer) staysAround(i int) bool {
	for j := range o.around(i) {
		if removes(o.steps(j)) {
			return false
		}
	}
	return true
}

// staysShutIn blocks a change that takes an object out of another one which is off, was to come up, and does not in this plan: it would
// wait for ever, and nobody would say why. It reports whether it did.
func (o *orderer) staysShutIn(i int) bool {
	c := &o.plan.Changes[i]
	system := o.world.System(c.System)
	if _, idle := o.idle[i]; !idle || system.sleep != starting || !o.isShutIn(i) || o.delta.options.Destroy {
		return false
	}
	if o.world.System(o.world.wanted[c.Address]).sleep == resting { // nothing can be made there either
		return false
	}
	first := system.off
	if j, planned := o.index[first]; planned && o.plan.Changes[j].To != nil { // it would come up in a place that is off itself
		first = cmp.Or(o.world.System(o.plan.Changes[j].To.System).off, first)
	}
	c.Action = providers.Update
	return o.block(i, *shutIn(c, system.off, first))
}

// staysSwitching blocks a change that a command asks for inside of an object which still has a setting under which nothing inside is
// managed, and keeps it in this plan. It reports whether it did.
func (o *orderer) staysSwitching(i int) bool {
	c := &o.plan.Changes[i]
	system := o.world.System(c.System)
	if _, idle := o.idle[i]; !idle || system.sleep != switching || !o.delta.options.asksFor(c.Address) {
		return false
	}
	return o.block(i, Block{Cause: CauseOff, Problem: system.unread()})
}

// reach decides whether a change can be carried out in a place. If it cannot, the change waits, or
// is left idle. make says that the change makes an object there.
func (o *orderer) reach(i int, in Place, makes bool) {
	c := &o.plan.Changes[i]
	system := o.world.System(in.System)
	parent, planned := o.index[in.Inside]
	now := planned && o.active(parent)
	going := c.Want == nil || o.delta.options.Destroy
	switch system.sleep {
	case starting, resting:
		if off, planned := o.index[system.off]; planned && o.active(off) && comesUp(o.steps(off)) {
			o.wait(i, system.off)
		} else {
			o.idle[i] = fmt.Sprintf("%s is off: what is inside of it is not read", system.off)
		}
		return
	case switching:
		if by, planned := o.index[system.off]; planned && o.active(by) && comesUp(o.steps(by)) {
			o.wait(i, system.off)
		} else {
			o.idle[i] = system.unread().Error()
		}
		return
	case inapplicable: // it is to be made there
		o.idle[i] = system.whyInapplicable()
		return
	case nowhere:
		return
	case unmade, "":
	default:
		panic("unknown sleep " + string(system.sleep))
	}
	if going || o.follows(i, parent, planned) {
		return
	}
	if !now {
		if system.sleep == unmade {
			o.idle[i] = fmt.Sprintf("%s does not exist", in.Inside)
		}
		return
	}
	above := &o.plan.Changes[parent]
	fresh := system.sleep == unmade || above.Action == providers.ReplaceIt || above.with != (spec.Address{})
	switch steps := o.steps(parent); {
	case makes && fresh && o.willBeUp(parent):
		// Nothing will be inside of it: what is to be there is made with it.
	case system.sleep == unmade, makes && fresh:
		o.idle[i] = fmt.Sprintf("%s will be off", in.Inside)
	case !slices.ContainsFunc(steps, lowers) && above.Action != providers.Start:
	case above.Action == providers.RestartIt:
		// Its facts are known: it is released, and changed once the object around it is back.
	case comesUp(steps):
		o.wait(i, in.Inside)
	case slices.ContainsFunc(steps, lowers):
		o.idle[i] = fmt.Sprintf("%s will be off", in.Inside)
	}
}

// follows lets a change wait or rest with the change of the object that it is inside of. It
// reports whether it does.
func (o *orderer) follows(i, parent int, planned bool) bool {
	if !planned {
		return false
	}
	if until, late := o.late[parent]; late {
		o.wait(i, until)
		return true
	}
	why, idle := o.idle[parent]
	if idle {
		o.idle[i] = why
	}
	return idle
}

// willBeUp reports whether the inside of an object can be reached once its change is carried out.
func (o *orderer) willBeUp(i int) bool {
	if _, runs := spec.AttrAt(o.plan.Changes[i].Kind, "running"); !runs {
		return true
	}
	return comesUp(o.steps(i))
}

// resting decides about a change inside of an object that is off and stays off. It reports whether
// it blocked the change or gave it another action.
func (o *orderer) resting(i int, parentGoes bool) bool {
	c := &o.plan.Changes[i]
	off := o.world.System(c.System).off
	going := (c.Want == nil || o.delta.options.Destroy) && c.Record != nil
	switch {
	case going && parentGoes:
		if c.Action == providers.Forget {
			return false
		}
		if c.prevented {
			return o.block(i, *protected(c, fmt.Sprintf("it would go with %s", c.Inside)))
		}
		if shape, _ := spec.Shape(c.Kind); shape.Work && !o.delta.options.Allow.Dirty[c.Address] {
			return o.block(i, o.unchecked(c, o.world.System(c.System).off))
		}
		c.Action, c.Reason = providers.Forget, fmt.Sprintf("it goes with %s", c.Inside)
		return true
	case going && c.lets:
		c.Action, c.Reason = providers.Forget, "its removed block lets go of it"
		return o.block(i, Block{
			Cause: CauseOff,
			Problem: providers.Refuse(
				fmt.Sprintf("%s is off: vmctl's mark cannot be taken off what is inside of it", off),
				startFirst(off)),
		})
	case going && o.delta.options.Destroy:
		return o.block(i, Block{
			Cause: CauseOff,
			Problem: providers.Refuse(
				fmt.Sprintf("%s is off: what is inside of it cannot be removed", off),
				append(startFirst(off), providers.Say("or destroy it with all that is inside of it")...)),
		})
	default:
		c.Action = providers.NoOp
		o.idle[i] = fmt.Sprintf("%s is off and stays so: what is inside of it is not read", off)
		return false
	}
}

// inapplicable decides about a change inside of an object under a setting of which nothing inside is managed. It stays as it is
// recorded, unless a machine around it goes, and all inside with that. It reports whether it blocked the change or gave it
// another action.
func (o *orderer) inapplicable(i int) bool {
	c, system := &o.plan.Changes[i], o.world.System(o.plan.Changes[i].System)
	going := (c.Want == nil || o.delta.options.Destroy) && c.Record != nil
	before := c.Action
	c.Action, c.Reason = providers.NoOp, "" // what was to go with a machine stays if that turns out to be blocked
	if j := o.endingWith(i); j >= 0 && c.Record != nil {
		machine := o.plan.Changes[j].Address
		if c.prevented {
			return o.block(i, *protected(c, fmt.Sprintf("it would go with %s", machine)))
		}
		if going {
			c.Action, c.Reason = providers.Forget, fmt.Sprintf("it goes with %s", machine)
			return before != providers.Forget
		}
	}
	switch {
	case o.delta.options.asksFor(c.Address):
		return o.block(i, Block{Cause: CauseOff, Problem: system.unread()})
	case going && o.delta.options.Destroy:
		return o.block(i, Block{Cause: CauseOff, Problem: providers.Refuse(
			fmt.Sprintf("%s has %s: what is inside of it cannot be removed", system.off, system.setting),
			slices.Concat(
				providers.Say(fmt.Sprintf("write another %s into %s, and apply first", settingName(system.off.Kind), system.off)),
				providers.SayVmctl("or give it up: ", "state", "rm", c.Address.String())))})
	default:
		o.idle[i] = system.whyInapplicable()
		return before != providers.NoOp
	}
}

// endingWith returns the change that removes a machine around the object of a change, and with it all that is inside; -1: none
// does. To let go of what vmctl only connects to removes nothing.
func (o *orderer) endingWith(i int) int {
	for j := range o.around(i) {
		if !natures[o.plan.Changes[j].Kind].isFound && removes(o.steps(j)) {
			return j
		}
	}
	return -1
}

func (o *orderer) wait(i int, until spec.Address) {
	if !o.delta.Aside[o.plan.Changes[i].Address] {
		o.late[i] = until
	}
}

// waiters defers every change that refers to a deferred change, or that takes a claim which a
// deferred change holds. It blocks a VM that would have to wait until it is up itself, and then
// reports true.
func (o *orderer) waiters() bool {
	if len(o.late) == 0 {
		return false
	}
	again := false
	referring := inverse(o.delta.refers)
	takers := o.handovers().takers
	for todo := slices.Sorted(maps.Keys(o.late)); len(todo) > 0; {
		i := todo[0]
		todo = todo[1:]
		c := &o.plan.Changes[i]
		var all []int
		for _, a := range referring[c.Address] {
			if j, planned := o.index[a]; planned && !o.delta.options.Destroy {
				all = append(all, j)
			}
		}
		if c.Object != nil {
			for _, held := range holdings(o.world.System(c.System), c.Object) {
				for _, t := range takers[groupOf(c.System, held.claim)] {
					if held.concerns(t, &o.plan.Changes[t.change]) {
						all = append(all, t.change)
					}
				}
			}
		}
		for _, j := range all {
			if _, late := o.late[j]; late || o.plan.Changes[j].Blocked != nil {
				continue
			}
			if o.plan.Changes[j].Address == o.late[i] {
				again = o.block(j, Block{
					Cause: CauseDeferred,
					Problem: providers.Refuse(
						fmt.Sprintf("%s holds what it needs to come up, and changes only once what is inside of %s was read", c.Address, o.late[i]),
						providers.Say(fmt.Sprintf("apply in two steps: first %s without its references to what is inside of %s", c.Address, o.late[i]))),
				}) || again
				continue
			}
			if o.wait(j, o.late[i]); o.late[j] == o.late[i] {
				todo = append(todo, j)
			}
		}
	}
	return again
}

func comesUp(steps []providers.Step) bool {
	return slices.ContainsFunc(steps, func(s providers.Step) bool { return s.Phase == providers.PhaseUp || s.Phase == providers.PhaseReady })
}

// releasing returns the steps that release an object before a step lowers what it is inside of, and
// those that resume it once that is up again. There are none if the object itself is removed, or waits for its successor:
// its own steps take it down.
func (o *orderer) releasing(i int) (release, resume []providers.Step, err error) {
	c := &o.plan.Changes[i]
	replaced := c.Action == providers.ReplaceIt && c.To == nil && c.with == (spec.Address{}) && len(o.steps(i)) > 0
	if !c.observed || o.lowered(i) < 0 || removes(o.steps(i)) || replaced {
		return nil, nil, nil
	}
	change := c.Change
	change.Action, change.ID, change.Want, change.Edits = providers.Release, c.Object.ID, cty.NilVal, nil
	change.Mark, change.Rekey = nil, nil
	change.Ends = o.losesInside(i)
	if o.isBack(i) {
		change.Want = c.Want.Want
	}
	steps, err := o.world.System(c.System).steps(change)
	if err != nil {
		return nil, nil, fmt.Errorf("plan the release of %s: %w", c.Address, err)
	}
	resumes := slices.IndexFunc(steps, func(s providers.Step) bool { return s.Phase == providers.PhaseResume })
	if resumes < 0 {
		return steps, nil, nil
	}
	return slices.Clip(steps[:resumes]), steps[resumes:], nil
}

// losesInside reports whether an object is lost when what it is inside of goes down, though nothing removes that.
func (o *orderer) losesInside(i int) bool {
	for j := range o.around(i) {
		if o.isLostIn(j) {
			return true
		}
	}
	return false
}

// isLostIn reports whether the steps of a change take down an object, and lose by that what is inside of it, without removing it.
func (o *orderer) isLostIn(j int) bool {
	steps, object := o.steps(j), o.plan.Changes[j].Object
	return object != nil && object.Volatile && slices.ContainsFunc(steps, lowers) && !removes(steps)
}

// isBack reports whether an object that is released is resumed in this plan: it stays wanted where it
// is, and all that goes down around it comes up again.
func (o *orderer) isBack(i int) bool {
	c := &o.plan.Changes[i]
	if c.Want == nil || o.delta.options.Destroy || c.To != nil || (c.with != spec.Address{}) {
		return false
	}
	for j := range o.around(i) {
		if steps := o.steps(j); slices.ContainsFunc(steps, lowers) && (removes(steps) || !comesUp(steps)) {
			return false
		}
	}
	return true
}

func startFirst(off spec.Address) []providers.Advice {
	if group := natures[off.Kind].command; group != "" {
		return providers.SayVmctl("start the VM first: ", group, "start", off.String())
	}
	return providers.Say(fmt.Sprintf("start %s first: write running = true into its block, and apply", off))
}
