package planner

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// importsOf returns the user's name for the object to import to each address, by import blocks
// and by command. A destruction imports nothing.
func importsOf(c *spec.Config, o Options) map[spec.Address]providers.ID {
	all := map[spec.Address]providers.ID{}
	if o.Destroy {
		return all
	}
	for _, i := range c.Imports {
		all[i.To] = providers.ID(i.ID)
	}
	maps.Copy(all, o.Imports)
	return all
}

// imported decides about an address to which an object is to be imported. It reports whether it
// did: an object that was imported before is treated like any other.
func (d *differ) imported(c *Change, seen *Observation) bool {
	called, asked := d.imports[c.Address]
	if !asked {
		return false
	}
	found, exists := seen.System.Inventory.Found[c.Address]
	has := c.Record != nil && !c.Record.Reserved || seen.Marking == Ours
	_, now := d.options.Imports[c.Address] // an import block may have an old name of the object
	switch {
	case has && !exists && now:
		d.notThere(c, seen, called)
		return true
	case has && (!exists || seen.Marking == Ours && seen.Object.ID == found || c.Record != nil && c.Record.ID == string(found)):
		return false
	case has:
		d.refuseImport(c, fmt.Sprintf("%s, and %q is another", objectOf(c, seen), called),
			providers.SayVmctl("import that one to another address, or let go of this one's first: ", "state", "rm", "--force", c.Address.String()))
		return true
	}
	o := d.called(c, seen.System, called)
	if o == nil {
		return true
	}
	if why, next := d.notImportable(c.Address, seen.System, o); why != "" {
		d.refuseImport(c, why, providers.Say(next))
		return true
	}
	seen.Object, seen.Marking = o, Unmarked
	d.takeOver(c, o)
	return true
}

// objectOf returns a sentence that names the object of an address.
func objectOf(c *Change, seen *Observation) string {
	if o := seen.Object; o != nil && (seen.Marking == Ours || string(o.ID) == c.Record.ID) {
		return fmt.Sprintf("%s has an object already, %s", c.Address, describe(seen.System, o))
	}
	return fmt.Sprintf("%s is %s by its record, which is not there", c.Address, c.Record.ID) // an object that only has the name does not count
}

// notThere refuses to import an object that does not exist to an address that has an object.
func (d *differ) notThere(c *Change, seen *Observation, called providers.ID) {
	d.refuseImport(c, fmt.Sprintf("%s, and %q does not exist", objectOf(c, seen), called),
		providers.Say("leave the import out: the object of "+c.Address.String()+" is managed"))
	in := d.observations.indexes[seen.System.Key]
	if why := cmp.Or(in.unknown(c.Kind, called, string(called)), seen.System.Inventory.Partial[c.Kind]); why != nil {
		c.Blocked = unread(why.Within("%q could not be read", called))
	}
}

// called returns the object that the user names. If there is none or it could not be read, it
// blocks the change and returns nil.
func (d *differ) called(c *Change, system *System, name providers.ID) *providers.Object {
	in := d.observations.indexes[system.Key]
	found, exists := system.Inventory.Found[c.Address]
	if o := in.byID[idKey{c.Kind, found}]; exists && o != nil {
		return o
	}
	c.Action, c.Reason = providers.Import, fmt.Sprintf("%q is to be imported", name)
	why := in.unknown(c.Kind, name, string(name))
	if why == nil && exists {
		why = in.unknown(c.Kind, found, "")
	}
	if why == nil && !exists {
		why = system.Inventory.Partial[c.Kind]
	}
	switch {
	case why != nil:
		c.Blocked = unread(why.Within("%q could not be read", name))
	case exists:
		c.Blocked = unread(providers.Refuse(fmt.Sprintf("%q exists, and could not be read", name), nil))
	default:
		d.refuseImport(c, fmt.Sprintf("there is no %s %q in %s", c.Kind, name, system),
			providers.Say("name it as its system does, or leave the import out to have it made"))
	}
	return nil
}

// notImportable returns why an object cannot be imported to an address, and the user's next step;
// "": it can be imported.
func (d *differ) notImportable(a spec.Address, system *System, o *providers.Object) (why, next string) {
	what := describe(system, o)
	for _, other := range d.observations.taken[string(o.ID)] {
		if other != a && other.Kind == o.Kind {
			return fmt.Sprintf("%s is the one of %s already", what, other),
				fmt.Sprintf("to rename that: moved { from = %s, to = %s }, without the import", other, a)
		}
	}
	for _, other := range d.world.addresses() {
		if other != a && d.imports[other] != "" && system.Inventory.Found[other] == o.ID && d.world.placed[other] == system.Key && other.Kind == o.Kind {
			return fmt.Sprintf("%s is to be imported to %s as well", what, other), "leave out one of the two imports"
		}
	}
	switch d.observations.marking(a, o) {
	case Unmarked:
		return "", ""
	case Copied:
		return fmt.Sprintf("%s is a copy: its mark was written for %s", what, o.Owner.Of), "take the mark off it with the system's own tool, then import it"
	case Foreign, Moved, Ours:
	case Absent:
		panic("an object that is absent")
	}
	if o.Owner.ID == d.options.Project.Lineage() {
		return fmt.Sprintf("%s bears the mark of %s", what, o.Owner.Address),
			fmt.Sprintf("put the block of %s back, or rename it: moved { from = %s, to = %s }", o.Owner.Address, o.Owner.Address, a)
	}
	return fmt.Sprintf("%s is managed already: its mark names %s of project %q (%s)", what, o.Owner.Address, o.Owner.Project, o.Owner.ID),
		"let that project let go of it first, with removed { from = …, destroy = false }, and take the mark off it with the system's own tool"
}

func (d *differ) refuseImport(c *Change, why string, next []providers.Advice) {
	c.Action, c.Object, c.Edits, c.Mark, c.Rekey, c.Altered, c.Applies = providers.Import, nil, nil, nil, nil, false, ""
	c.Reason = fmt.Sprintf("%q is to be imported", d.imports[c.Address])
	c.Blocked = &Block{Cause: CauseImport, Problem: providers.Refuse(why, next)}
}

// takeOver compares an object that is to be imported with its spec. An attribute that the system
// does not show is assumed to match the spec.
func (d *differ) takeOver(c *Change, o *providers.Object) {
	c.Record, c.Object, c.Name = nil, o, o.Name
	c.Generation, c.Replaced, c.Was = 0, 0, nil
	c.Reason = fmt.Sprintf("%q is to be imported", d.imports[c.Address])
	if why := runStateUnknown(o); why != "" {
		c.Action, c.Blocked = providers.Import, unread(providers.Refuse("its run state could not be read: "+why, nil))
		return
	}
	c.Prior = d.asApplied(c)
	c.Warnings = append(c.Warnings, "attributes that the system does not report are assumed to match the spec")
	c.importing = true
	d.manage(c)
	switch {
	case c.Action == providers.ReplaceIt || c.Applies == providers.Replace:
		why := because(c.alterations(), providers.Replace)
		c.ID, c.Name, c.Replaced = o.ID, o.Name, 0
		c.Action, c.Reason, c.Altered = providers.Import, fmt.Sprintf("%q is to be imported", d.imports[c.Address]), false
		c.Blocked = &Block{
			Cause: CauseImport,
			Problem: providers.Refuse(
				"an import replaces nothing: "+why,
				providers.Say(fmt.Sprintf("write in the block of %s what the object has; change it once it is imported", c.Address))),
		}
	case c.Action == providers.Update && len(c.Edits) == 0:
		c.Action, c.Reason, c.Altered = providers.Import, "it is taken over as it is", false
	}
}

// asApplied returns the attributes that the system shows of an object, and those of the spec
// where it shows none.
func (d *differ) asApplied(c *Change) cty.Value {
	prior := concealed(c.Kind, c.Object.Attrs)
	if c.Want != nil {
		prior = overlay(c.Change.Want, c.Object.Attrs).Value
	}
	if c.Object.Running != nil {
		prior = with(prior, "running", cty.BoolVal(*c.Object.Running))
	}
	return prior
}
