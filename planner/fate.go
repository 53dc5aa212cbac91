package planner

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// fates decides about the changes inside of VMs that go down, come up or stay off, and about the
// changes that depend on deferred ones. It begins anew each time, from the changes that are not
// blocked. It reports whether it changed anything.
func (o *orderer) fates() bool {
	late, idle := o.late, o.idle
	o.late, o.idle = map[int]spec.Address{}, map[int]string{}
	again := false
	for i := range o.plan.Changes {
		if (o.plan.Changes[i].Inside != spec.Address{}) && o.plan.Changes[i].Blocked == nil {
			again = o.fate(i) || again
		}
	}
	again = o.stranded() || again
	again = o.waiters() || again
	return again || !maps.Equal(late, o.late) || !maps.Equal(idle, o.idle)
}

// stranded blocks a change that needs a value of an object which is not made because its VM is
// off. It reports whether it blocked anything.
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
			again = o.block(j, Block{
				Cause: CauseOff,
				Problem: providers.Refuse(
					fmt.Sprintf("it refers to %s, which is made once %s runs", c.Address, c.Inside),
					providers.Say(fmt.Sprintf("write running = true into %s, or leave out the reference", c.Inside))),
			}) || again
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

// fate decides whether a change inside of a VM is carried out, deferred or left idle. It reports
// whether it blocked the change or gave it another action.
func (o *orderer) fate(i int) bool {
	c := &o.plan.Changes[i]
	vm, planned := o.index[c.Inside]
	planned = planned && o.active(vm) && !o.delta.Aside[c.Inside]
	switch o.world.System(c.System).sleep {
	case starting:
		if planned && comesUp(o.steps(vm)) {
			o.wait(i, c.Inside)
			return false
		}
		o.idle[i] = fmt.Sprintf("%s is off: what is inside of it is not read", c.Inside)
		return false
	case resting:
		goes := planned && (o.plan.Changes[vm].Action == providers.Destroy || o.plan.Changes[vm].Action == providers.Forget)
		return o.resting(i, goes)
	case nowhere:
		if c.Want != nil && !o.delta.options.Destroy {
			o.idle[i] = fmt.Sprintf("%s will be off", c.Inside)
			return false
		}
	case "":
	default:
		panic("unknown sleep " + string(o.world.System(c.System).sleep))
	}
	if !planned || c.Want == nil || o.delta.options.Destroy { // it is going, or as it is
		return false
	}
	switch steps := o.steps(vm); {
	case !slices.ContainsFunc(steps, lowers) && o.plan.Changes[vm].Action != providers.Start:
	case o.plan.Changes[vm].Action == providers.RestartIt:
		// Its facts are known: it is released, and changed once the VM is back.
	case comesUp(steps):
		o.wait(i, c.Inside)
	case slices.ContainsFunc(steps, lowers):
		o.idle[i] = fmt.Sprintf("%s will be off", c.Inside)
	}
	return false
}

// resting decides about a change inside of a VM that is off and stays off. It reports whether it
// blocked the change or gave it another action.
func (o *orderer) resting(i int, vmGoes bool) bool {
	c := &o.plan.Changes[i]
	going := (c.Want == nil || o.delta.options.Destroy) && c.Record != nil
	switch {
	case going && vmGoes:
		if c.Action == providers.Forget {
			return false
		}
		c.Action, c.Reason = providers.Forget, fmt.Sprintf("it goes with %s", c.Inside)
		return true
	case going && c.lets:
		c.Action, c.Reason = providers.Forget, "its removed block lets go of it"
		return o.block(i, Block{
			Cause: CauseOff,
			Problem: providers.Refuse(
				fmt.Sprintf("%s is off: vmctl's mark cannot be taken off what is inside of it", c.Inside),
				startFirst(c.Inside)),
		})
	case going && o.delta.options.Destroy:
		return o.block(i, Block{
			Cause: CauseOff,
			Problem: providers.Refuse(
				fmt.Sprintf("%s is off: what is inside of it cannot be removed", c.Inside),
				append(startFirst(c.Inside), providers.Say("or destroy it with all that is inside of it")...)),
		})
	default:
		c.Action = providers.NoOp
		o.idle[i] = fmt.Sprintf("%s is off and stays so: what is inside of it is not read", c.Inside)
		return false
	}
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
			for _, held := range holdings(c.Object) {
				for _, t := range takers[claimGroup{c.System, held.claim.Group()}] {
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

// releasing returns the steps that release an object inside of a VM before a step lowers that VM.
// There are none if the object itself is removed.
func (o *orderer) releasing(i int) ([]providers.Step, error) {
	c := &o.plan.Changes[i]
	vm, planned := o.index[c.Inside]
	if (c.Inside == spec.Address{}) || !planned || !slices.ContainsFunc(o.steps(vm), lowers) || !c.observed || removes(o.steps(i)) {
		return nil, nil
	}
	release := c.Change
	release.Action, release.ID, release.Want, release.Edits = providers.Release, c.Object.ID, cty.NilVal, nil
	release.Mark, release.Rekey = nil, nil
	steps, err := o.world.System(c.System).steps(release)
	if err != nil {
		return nil, fmt.Errorf("plan the release of %s: %w", c.Address, err)
	}
	return steps, nil
}

func startFirst(vm spec.Address) []providers.Advice {
	return providers.SayVmctl("start the VM first: ", "vm", "start", vm.String())
}
