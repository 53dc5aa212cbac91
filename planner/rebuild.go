package planner

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Rebuild plans a record for every object that bears the project's mark and has none. Its steps
// write records and call no provider. An attribute that the system does not show gets the value
// of the spec. An object that is not in the spec gets a record that prevents its destruction,
// since nobody has said that it should go.
//
// The findings say which objects get no record, and what could not be read.
func Rebuild(c *spec.Config, s *state.Snapshot, w *World, o Options) (*Plan, error) {
	d := newDiffer(c, s, w, o)
	d.known = s.Values()
	found := d.unrecorded()
	for _, a := range slices.SortedFunc(maps.Keys(found), spec.Address.Compare) {
		d.rebuild(a, found[a])
	}
	d.unseen()
	slices.SortFunc(d.findings, compareFindings)
	return Order(Delta{Project: o.Project, Serial: s.Serial, Changes: d.changes, Findings: d.findings}, w)
}

// locatedObject is an object with the system that shows it.
type locatedObject struct {
	system *System
	object *providers.Object
}

// unrecorded lists the objects that are ours and that no record names, by the address in their
// mark or the one to which a moved block leads it.
func (d *differ) unrecorded() map[spec.Address][]locatedObject {
	recorded := map[providers.ID]bool{}
	for _, r := range d.state.Records {
		recorded[providers.ID(r.ID)] = true
	}
	found := map[spec.Address][]locatedObject{}
	for _, system := range d.world.Systems() {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if MarkingOf(o, d.options.Project) == Ours && !recorded[o.ID] {
				if a := d.world.addressOf(o); !d.isLeft(a) {
					found[a] = append(found[a], locatedObject{system, o})
				}
			}
		}
	}
	return found
}

// rebuild plans the record of an address, or says why it gets none.
func (d *differ) rebuild(a spec.Address, found []locatedObject) {
	why := ""
	o := found[0].object
	switch record, recorded := d.state.Records[a]; {
	case a == spec.Address{}:
		why = "its mark names no address"
	case recorded:
		why = fmt.Sprintf("the record of %s names another object, %s", a, record.ID)
	case len(found) > 1:
		why = fmt.Sprintf("%d objects bear the mark of %s", len(found), a)
	case runStateUnknown(o) != "":
		why = "its run state could not be read: " + runStateUnknown(o)
	}
	if why == "" {
		d.changes = append(d.changes, d.rebuilt(a, found[0]))
		return
	}
	for _, p := range found {
		kind := providers.FindOrphan
		if runStateUnknown(p.object) != "" {
			kind = providers.FindUnknown
		}
		d.find(providers.Finding{
			Kind: kind, Address: a, Object: p.object.Name,
			Evidence: []string{describe(p.system, p.object) + ": " + why}, Action: "it gets no record",
		})
	}
}

func (d *differ) rebuilt(a spec.Address, p locatedObject) Change {
	c := Change{
		Change: providers.Change{Address: a, Kind: a.Kind, Action: providers.Adopt, Reason: "it bears our mark", Object: p.object},
		Place:  Place{System: p.system.Key, Settings: p.system.Settings, Inside: p.system.Inside}, Provider: p.system.Ref,
	}
	resource, inSpec := d.config.Resource(a)
	if inSpec {
		resource, _ = d.resolve(resource) //nolint:errcheck // the record is made of the object, whatever the block says
		if resource.Unread != nil {       // its name is not the text that the object has
			resource.Want = with(resource.Want, resource.Unread.Path, cty.UnknownVal(cty.String))
		}
		c.Want, c.Change.Want, c.Policy, c.Needs = &resource, storable(resource.Want), resource.Policy, resource.Uses
		if d.world.wanted[a] == p.system.Key {
			c.Provider = resource.Provider
		}
	}
	c.Conditions = d.conditionsOf(&c)
	d.adopt(&c)
	c.ID, c.Warnings = p.object.ID, nil
	c.Prior = with(c.Prior, "name", cty.StringVal(p.object.Name))
	// The record gets the present values, not the wanted ones.
	c.Want, c.Change.Want = nil, cty.NilVal
	if !inSpec {
		c.Policy = cty.ObjectVal(map[string]cty.Value{"lifecycle": cty.ObjectVal(map[string]cty.Value{"prevent_destroy": cty.True})})
		c.Warnings = []string{"it is not in the files: its record prevents its destruction"}
	}
	return c
}

// storable returns v without the attributes that are not known.
func storable(v cty.Value) cty.Value {
	m := map[string]cty.Value{}
	for name, part := range v.AsValueMap() {
		if part.IsWhollyKnown() {
			m[name] = part
		}
	}
	return cty.ObjectVal(m)
}

// unseen adds a finding for everything that could not be read: more of it may be ours.
func (d *differ) unseen() {
	for _, system := range d.world.Systems() {
		for _, u := range system.Inventory.Unknown {
			d.find(providers.Finding{
				Kind: providers.FindUnknown, Object: cmp.Or(u.Name, string(u.ID)),
				Evidence: []string{fmt.Sprintf("%s: %s", system.Ref, u.Reason)}, Action: "it gets no record",
			})
		}
		for _, kind := range slices.Sorted(maps.Keys(system.Inventory.Partial)) {
			d.find(providers.Finding{
				Kind: providers.FindUnknown, Object: system.Ref.String(),
				Evidence: []string{fmt.Sprintf("its %ss could not all be read: %s", kind, system.Inventory.Partial[kind])},
				Action:   "what was not read gets no record", Next: system.Inventory.Partial[kind].Next,
			})
		}
	}
}
