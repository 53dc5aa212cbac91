package planner

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// decideAfter is what is decided about before each address: what it uses, and who
// has the name that it is to get.
func (d *differ) decideAfter(all []spec.Address) map[spec.Address][]spec.Address {
	after := usesOf(d.config, d.state, all)
	for _, a := range all {
		system := d.world.placed[a]
		if system == "" {
			continue
		}
		o := d.sights.indexes[system].byName[nameKey{a.Kind, d.name(a)}]
		if o == nil {
			continue
		}
		for _, other := range d.sights.taken[string(o.ID)] {
			if other != a && other.Kind == a.Kind {
				after[a] = append(slices.Clip(after[a]), other)
			}
		}
	}
	return after
}

// inherits is the address of an object whose name is free once this plan was
// carried out: it is destroyed, or replaced by one of another name. Zero: it keeps
// its name, or is nobody's.
func (d *differ) inherits(c *Change, o *providers.Object) spec.Address {
	for _, a := range d.sights.taken[string(o.ID)] {
		other, decided := d.decided[a]
		if !decided || a == c.Address || !d.scope[a] || other.Blocked != nil || other.Object != o || d.options.Destroy {
			continue
		}
		if other.Action == providers.Destroy || other.Action == providers.ReplaceIt && other.Name != o.Name {
			return a
		}
	}
	return spec.Address{}
}
