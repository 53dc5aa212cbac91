package planner

import (
	"fmt"
	"maps"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// holders blocks a change that deletes, unlocks or takes a disk, or deletes a network, if a VM that could not be read
// may have that disk or be in that network. Unknown never authorises a mutation.
func (d *differ) holders(c *Change) {
	if c.Blocked != nil {
		return
	}
	switch n := natures[c.Kind]; {
	case n.isDisk, n.prefix != "":
		if c.Object != nil && (c.Action == providers.Destroy || c.Action == providers.ReplaceIt || changes(c.Action) && hasStaleLock(c.Object)) {
			c.Blocked = d.unknownHolder(c, c.Address, c.Object.ID)
		}
	case n.takesDisks && changes(c.Action):
		for _, a := range c.Needs {
			if used := c.Uses[a]; natures[a.Kind].isDisk && used.ID != "" && c.Blocked == nil && !has(c.Object, used.ID) {
				c.Blocked = d.unknownHolder(c, a, used.ID)
			}
		}
	}
}

// changes reports whether an action changes more than a record.
func changes(a providers.Action) bool {
	switch a {
	case providers.Create, providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start, providers.Stop,
		providers.Import, providers.Release, providers.Recover:
		return true
	case providers.Adopt, providers.Forget, providers.NoOp:
		return false
	default:
		panic("unknown action " + string(a))
	}
}

func has(o *providers.Object, disk providers.ID) bool {
	return o != nil && UsesDisk(o, &providers.Object{ID: disk})
}

// unknownHolder returns a block if another VM than c may have a disk or a network: that VM, its run state or
// the list of VMs could not be read. A VM that could not be read does not count if its record has
// no such disk or network. nil: there is no such VM.
func (d *differ) unknownHolder(c *Change, held spec.Address, id providers.ID) *Block {
	system := d.world.systems[c.System]
	block := func(who string, why *providers.Problem) *Block {
		return unread(why.Within("%s may have %s", who, held))
	}
	for _, u := range system.Inventory.Unknown {
		if a, recorded := d.recorded[u.ID]; natures[u.Kind].takesDisks && a != c.Address && (!recorded || d.usesByRecord(a, held)) {
			return block(fmt.Sprintf("%s %q", u.Kind, u.Name), providers.Refuse("it could not be read: "+u.Reason, nil))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(system.Inventory.Partial)) {
		if natures[kind].takesDisks {
			return block("a "+string(kind), system.Inventory.Partial[kind].Within("they could not all be listed"))
		}
	}
	for _, o := range d.observations.indexes[system.Key].veiled {
		if has(o, id) {
			return block(describe(system, o), providers.Refuse("its run state could not be read: "+runStateUnknown(o), nil))
		}
	}
	return nil
}

func (d *differ) usesByRecord(vm, held spec.Address) bool {
	return slices.Contains(d.state.Records[vm].Uses, held)
}
