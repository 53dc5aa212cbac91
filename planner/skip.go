package planner

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// skip leaves out what could not be read, and what is blocked because of it, where the spec says so: the rest of the plan is carried
// out. What the user named is not left out: it blocks the plan.
func (o *orderer) skip() {
	if !o.delta.skips {
		return
	}
	for again := true; again; {
		again = false
		for i := range o.plan.Changes {
			c := &o.plan.Changes[i]
			if c.Blocked == nil || c.Blocked.Skipped || o.delta.options.names(c.Address) || !o.followsUnread(c.Blocked) {
				continue
			}
			b := *c.Blocked
			b.Skipped, c.Blocked, again = true, &b, true
		}
	}
}

// followsUnread reports whether a block says that something could not be read, or follows from one that is left out for that.
func (o *orderer) followsUnread(b *Block) bool {
	if b.Cause == CauseUnknown {
		return true
	}
	i, planned := o.index[b.by]
	return planned && o.plan.Changes[i].Blocked != nil && o.plan.Changes[i].Blocked.Skipped
}

// skipBlocks blocks what rests on something that could not be read and is left out, by the spec or by a record, what would take such a
// thing down with what it is inside of, and what would remove an object that it uses: nobody knows what would be lost.
func (o *orderer) skipBlocks() bool {
	if !o.delta.skips {
		return false
	}
	again := false
	for i := range o.plan.Changes {
		if !o.active(i) || o.comesToNothing(i) {
			continue
		}
		if a, rests := o.unreadBelow(i, map[spec.Address]bool{}); rests {
			again = o.block(i, followsFrom(CauseDependency, a, "it needs %s, which could not be read")) || again
		}
	}
	for _, i := range o.inwards {
		child := &o.plan.Changes[i]
		if !child.isUnread() {
			continue
		}
		for j := range o.around(i) {
			if slices.ContainsFunc(o.steps(j), lowers) {
				again = o.block(j, followsFrom(CauseInside, child.Address, "%s is inside of it, and could not be read")) || again
			}
		}
	}
	for i := range o.plan.Changes {
		user := &o.plan.Changes[i]
		if !user.isUnread() {
			continue
		}
		for _, a := range user.restsOn() {
			if j, planned := o.index[a]; planned && removes(o.steps(j)) {
				again = o.block(j, followsFrom(CauseHeld, user.Address, "%s uses it, and could not be read")) || again
			}
		}
	}
	return again
}

// isUnread reports whether a change is blocked because something about its own object could not be read.
func (c *Change) isUnread() bool { return c.Blocked != nil && c.Blocked.Cause == CauseUnknown }

// restsOn lists the addresses that an object needs: by the spec, by its place, and by its record.
func (c *Change) restsOn() []spec.Address {
	all := slices.Concat(c.Needs, c.Around)
	if c.Record != nil {
		all = append(all, c.Record.Uses...)
	}
	return all
}

func followsFrom(cause Cause, a spec.Address, reason string) Block {
	return Block{Cause: cause, by: a, Problem: providers.Refuse(fmt.Sprintf(reason, a), providers.Say(fmt.Sprintf("see what the plan says of %s", a)))}
}

// unreadBelow returns an address that could not be read, and on which a change rests, at any depth. false: there is none.
func (o *orderer) unreadBelow(i int, seen map[spec.Address]bool) (spec.Address, bool) {
	for _, a := range o.plan.Changes[i].restsOn() {
		j, planned := o.index[a]
		if !planned || seen[a] {
			continue
		}
		seen[a] = true
		if o.plan.Changes[j].isUnread() {
			return a, true
		}
		if a, rests := o.unreadBelow(j, seen); rests {
			return a, true
		}
	}
	return spec.Address{}, false
}

// names reports whether the user named an address: with a target, or to have something done with it.
func (o Options) names(a spec.Address) bool {
	for _, named := range []map[spec.Address]bool{o.Running, o.Restart, o.Replace, o.Revert, o.Rekey, o.Unlock, o.CleanUp} {
		if _, is := named[a]; is {
			return true
		}
	}
	_, state := o.States[a]
	_, imported := o.Imports[a]
	return state || imported || slices.Contains(o.Scope.Targets, a)
}
