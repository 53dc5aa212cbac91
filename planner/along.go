package planner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// workKinds returns the kinds inside of an object of a kind in which people work, of those that this build manages.
func workKinds(types providers.Types, outer spec.Kind) []spec.Kind {
	return slices.DeleteFunc(spec.InsideOf(outer), func(kind spec.Kind) bool {
		_, built := types.Inside[kind]
		return !isWork(kind) || !built
	})
}

// endsInside reports whether a change ends what is inside of its object: it removes the object, or takes down one whose root is in
// memory.
func (c *Change) endsInside() bool {
	switch {
	case c.Object == nil, c.Blocked != nil:
		return false
	case c.removesObject():
		return true
	}
	return c.Object.Volatile && (c.Action == providers.Stop || c.Action == providers.RestartIt || c.Action == providers.Recover)
}

// removesObject reports whether a change removes its present object.
func (c *Change) removesObject() bool {
	return c.Action == providers.Destroy || c.Action == providers.ReplaceIt
}

// lookLimit is the time for a look into an object in which nothing is known to be, unless the spec has a longer one
// (vmctl.refresh.timeout): a guest answers in seconds, and connecting to one that does not takes 45 seconds at most. A shorter one does
// not count, since what the look does not see goes with the object.
const lookLimit = time.Minute

// lookInside reads the insides of the objects that changes end, where people may work in them, and places the orphans that are there.
// It reports whether there are any.
func (w *World) lookInside(ctx context.Context, open Open, d Delta, c *spec.Config, s *state.Snapshot, o Options) (found bool, err error) {
	var outer []spec.Address
	for i := range d.Changes {
		change := &d.Changes[i]
		kinds := workKinds(o.Types, change.Kind)
		if len(kinds) == 0 || d.Aside[change.Address] || !change.endsInside() {
			continue
		}
		outer = append(outer, change.Address)
		if !isUp(change.Object) {
			continue
		}
		system := w.systems[change.System]
		for _, kind := range kinds {
			_, isKnown := w.systems[insideKey(o.Types.Inside[kind], change.Address)]
			key, err := w.addInside(w.keys, spec.Address{Kind: kind}, change.Address, system.Ref, system.homeKey())
			if err != nil {
				return false, err
			}
			if system := w.systems[key]; !isKnown { // nothing says that anything is inside: a guest that hangs keeps nobody from destroying it
				system.limit = max(system.limit, lookLimit)
			}
		}
	}
	if len(outer) == 0 {
		return false, nil
	}
	if err := w.observeInwards(ctx, open, w.nextLayer(), c, s, o); err != nil {
		return false, err
	}
	recorded := map[providers.ID]bool{}
	for _, r := range s.Records {
		recorded[providers.ID(r.ID)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(w.systems)) {
		system := w.systems[key]
		if slices.Contains(outer, system.Inside) {
			found = w.placeAlong(system, recorded, o) || found
		}
	}
	return found, nil
}

// placeAlong places the orphans of a system that go with the object around it. It reports whether there are any.
func (w *World) placeAlong(system *System, recorded map[providers.ID]bool, o Options) bool {
	found := false
	for i := range system.Inventory.Objects {
		object := &system.Inventory.Objects[i]
		if !isWork(object.Kind) || MarkingOf(object, o.Project) != Ours || object.Owner.Address.Kind != object.Kind || recorded[object.ID] || w.placed[object.Owner.Address] != "" {
			continue
		}
		w.placed[object.Owner.Address], w.along[object.Owner.Address] = system.Key, true
		found = true
	}
	return found
}

// homeKey returns the key of the outermost system around a system, or of itself.
func (s *System) homeKey() systemKey {
	key := s.home
	if key == "" {
		key = s.Key
	}
	return systemKey{key: key, settings: s.Settings}
}

// goesAlong reports whether the object of a change is an orphan that goes with what it is inside of.
func (d *differ) goesAlong(c *Change) bool {
	around := d.decided[c.Inside]
	return d.world.along[c.Address] && around != nil && around.removesObject()
}

// unnamed lists the addresses of objects that neither the spec nor the state names.
func (d *Delta) unnamed() []spec.Address {
	var all []spec.Address
	for i := range d.Changes {
		if c := &d.Changes[i]; c.Record == nil && c.Want == nil && c.Object != nil {
			all = append(all, c.Address)
		}
	}
	return all
}

// mayHold reports whether work may be inside of the object of a change that no record tells of. Anything may be where its own record is
// lost. Where that was removed by hand or made anew, such work is there only if a block wants it, or a record of such work was removed
// by hand. No work is in what an earlier run has begun to delete, after a look inside.
func (d *differ) mayHold(c *Change) bool {
	if c.Object == nil || len(workKinds(d.options.Types, c.Kind)) == 0 || !isUp(c.Object) && d.beganToDelete(c) {
		return false
	}
	_, byHand := d.state.Forgotten[string(c.Object.ID)]
	recorded := c.Record != nil && c.Record.ID == string(c.Object.ID)
	switch {
	case recorded && !c.Record.Found:
		return false
	case !recorded && !byHand:
		return true
	}
	for i := range d.config.Resources {
		if r := &d.config.Resources[i]; r.Inside == c.Address && isWork(r.Address.Kind) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(d.state.Forgotten)), func(a spec.Address) bool { return isWork(a.Kind) })
}

// isWork reports whether people work in the objects of a kind.
func isWork(kind spec.Kind) bool {
	shape, _ := spec.Shape(kind)
	return shape.Work
}

// unseenBlocks blocks the end of each object in which work may be that no record tells of, and whose inside was not read; and of each
// one with such work at an address that has another object.
func (o *orderer) unseenBlocks() bool {
	again := false
	for i := range o.plan.Changes {
		c := &o.plan.Changes[i]
		kinds := workKinds(o.delta.options.Types, c.Kind)
		if c.Object == nil || len(kinds) == 0 || o.delta.options.Allow.Dirty[c.Address] || !o.endsInside(i) {
			continue
		}
		for _, kind := range kinds {
			system := o.world.systems[insideKey(o.delta.options.Types.Inside[kind], c.Address)]
			if c.mayHold {
				if block := o.unseen(c, kind, system); block != nil {
					again = o.block(i, *block) || again
				}
			}
			if system != nil {
				again = o.strangeWork(i, system) || again
			}
		}
	}
	return again
}

// endsInside reports whether steps that are carried out end what is inside of the object of a change.
func (o *orderer) endsInside(i int) bool {
	steps := o.steps(i)
	return removes(steps) || o.plan.Changes[i].Object.Volatile && slices.ContainsFunc(steps, lowers)
}

// unseen returns the block that keeps an object whose inside was not read; nil: it was.
func (o *orderer) unseen(c *Change, kind spec.Kind, system *System) *Block {
	next := losing(c)
	if !isUp(c.Object) {
		b := &Block{Cause: CauseDirty}
		if c.Record == nil {
			next = append(providers.Say("put its block back, apply, and see what the plan says of what is inside"), next...)
		} else {
			b.Wake = c.Address
			next = slices.Concat(startFirst(c.Address), o.wakeFirst(), next)
		}
		b.Problem = providers.Refuse(
			fmt.Sprintf("%s is off, and what is inside of it may have no record: nobody can see whether a %s there has work that exists nowhere else", c.Address, kind), next)
		return b
	}
	var why *providers.Problem
	switch {
	case system == nil:
		return nil
	case system.unread() != nil:
		why = system.unread()
	default:
		why = system.Inventory.Partial[kind]
	}
	if why == nil {
		return nil
	}
	return &Block{Cause: CauseDirty, Problem: providers.Refuse(
		fmt.Sprintf("what is inside of it may have no record, and could not be read: nobody can see whether a %s there has work that exists nowhere else: %s", kind, why.Error()),
		append(slices.Clone(why.Next), next...))}
}

// strangeWork blocks the end of an object inside of which an orphan has such work, if the address of the orphan has another object. It
// reports whether it blocked anything.
func (o *orderer) strangeWork(i int, system *System) bool {
	again := false
	for j := range system.Inventory.Objects {
		object := &system.Inventory.Objects[j]
		_, planned := o.objects[object]
		why := dirtReason(object)
		if planned || why == "" || MarkingOf(object, o.plan.Project) != Ours || o.delta.options.Allow.Dirty[object.Owner.Address] {
			continue
		}
		again = o.block(i, Block{Cause: CauseDirty, Problem: providers.Refuse(
			fmt.Sprintf("%s is inside of it, bears the mark of %s, which is another object, and has work that exists nowhere else: %s", describe(system, object), object.Owner.Address, why),
			losing(&o.plan.Changes[i]))}) || again
	}
	return again
}
