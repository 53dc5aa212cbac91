package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// resourceRef is one attribute that stands for another resource.
type resourceRef struct {
	attr Attr
	path string
	to   Address
	rng  hcl.Range
}

// resourceRef reads the value of an attribute that stands for a whole resource, and
// returns the address of that.
func (d *decoder) resourceRef(v cty.Value, known Attr, p location, owner string) cty.Value {
	unknown := cty.UnknownVal(cty.String)
	own := ownAddressOf(v)
	if undecided := !v.IsKnown() && !v.Type().IsPrimitiveType(); undecided || !own.IsKnown() {
		if !d.quiet {
			d.add(mistake(p.rng, "Unknown value",
				"`%s` of `%s` must be known before anything is observed. Use variables, locals and attributes that the spec sets.", p.path, owner))
		}
		return unknown
	}
	to, err := ParseAddress(text(own))
	if err != nil || !slices.Contains(d.uses, to) {
		d.add(mistake(p.rng, "Invalid reference", "`%s` of `%s` %s", p.path, owner, d.notAReference(v, known)))
		return unknown
	}
	if !slices.Contains(known.Refers, to.Kind) {
		d.add(mistake(p.rng, "Invalid reference", "`%s` of `%s` is `%s`; it must be a %s.%s", p.path, owner, to, kindsInWords(known.Refers), d.exampleReference(known)))
		return unknown
	}
	for _, other := range d.resourceRefs {
		if other.to == to && other.attr.Name == known.Name {
			d.add(mistake(p.rng, "Used twice", "`%s` of `%s` is `%s`, which `%s` names already. Remove one.", p.path, owner, to, other.path))
			return unknown
		}
	}
	d.resourceRefs = append(d.resourceRefs, resourceRef{attr: known, path: p.path, to: to, rng: p.rng})
	return cty.StringVal(to.String())
}

// RefersTo lists the attributes and blocks of a kind that name an address in a want,
// where references to whole resources are written; in the shape's order.
func RefersTo(kind Kind, want cty.Value, to Address) []string {
	shape := resourceShapes[kind]
	var names []string
	for _, a := range shape.Attrs {
		if a.isReference(want, to) {
			names = append(names, a.Name)
		}
	}
	for _, b := range shape.Blocks {
		if b.refers(ctyread.Attr(want, b.Name), to) {
			names = append(names, b.Name)
		}
	}
	return names
}

// refers reports whether an object of a block, or one of a list of them, names an
// address.
func (b Block) refers(v cty.Value, to Address) bool {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return false
	}
	if b.Repeated {
		b.Repeated = false
		return v.CanIterateElements() && slices.ContainsFunc(v.AsValueSlice(), func(element cty.Value) bool { return b.refers(element, to) })
	}
	return slices.ContainsFunc(b.Attrs, func(a Attr) bool { return a.isReference(v, to) }) ||
		slices.ContainsFunc(b.Blocks, func(nested Block) bool { return nested.refers(ctyread.Attr(v, nested.Name), to) })
}

func (a Attr) isReference(v cty.Value, to Address) bool {
	return slices.Contains(a.Refers, to.Kind) && text(ctyread.Attr(v, a.Name)) == to.String()
}

// ownAddressOf returns the address that a resource has among its attributes, null for any other
// value.
func ownAddressOf(v cty.Value) cty.Value {
	if !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(ownAddress.Name) {
		return cty.NullVal(cty.String)
	}
	if own := v.GetAttr(ownAddress.Name); own.Type() == cty.String {
		return own
	}
	return cty.NullVal(cty.String)
}

// notAReference returns the mistake of a value that is no resource: the rest of a sentence that
// begins with the attribute.
func (d *decoder) notAReference(v cty.Value, known Attr) string {
	if v.Type() == cty.String && v.IsKnown() {
		if to, err := ParseAddress(v.AsString()); err == nil && slices.Contains(known.Refers, to.Kind) {
			return fmt.Sprintf("is the string %q. Write the reference without quotes: `%s`.", shorten(v.AsString()), to)
		}
	}
	if (v.Type().IsObjectType() || v.Type().IsMapType()) && v.LengthInt() > 0 {
		for _, key := range sortedKeys(v) {
			element := v.AsValueMap()[key]
			if to, err := ParseAddress(text(ownAddressOf(element))); err == nil && slices.Contains(known.Refers, to.Kind) {
				return fmt.Sprintf("is a block with `for_each`. Name one instance, for example `%s`.", to)
			}
		}
	}
	return fmt.Sprintf("is %s, not a whole %s.%s", describeType(v.Type()), kindsInWords(known.Refers), d.exampleReference(known))
}

func (d *decoder) exampleReference(known Attr) string {
	for _, a := range d.uses {
		if slices.Contains(known.Refers, a.Kind) {
			return fmt.Sprintf(" Write `%s`.", a)
		}
	}
	return fmt.Sprintf(" Write a reference, for example `%s.NAME`.", known.Refers[0])
}

// kindsInWords names kinds of which one is meant: "vm or engine".
func kindsInWords(kinds []Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, " or ")
}

// checkResourceRefs reports disks that are in another system than the machine that uses them, or
// that several machines use.
func (l *loader) checkResourceRefs(c *Config) {
	type use struct {
		resourceRef
		user Resource
	}
	var uses []use
	for _, n := range c.evaluator.order {
		for _, i := range c.evaluator.base.result(n).instances {
			for _, r := range i.resourceRefs {
				if slices.Contains(r.attr.Refers, Disk) {
					uses = append(uses, use{r, i.resource})
				}
			}
		}
	}
	slices.SortStableFunc(uses, func(a, b use) int { return compareRanges(&a.rng, &b.rng) })
	users := map[Address]Address{}
	for _, u := range uses {
		l.checkDisk(c, u.user, u.resourceRef, users)
	}
}

func (l *loader) checkDisk(c *Config, user Resource, r resourceRef, users map[Address]Address) {
	disk, ok := c.Resource(r.to)
	e := c.evaluator
	if !ok || user.Provider == (ProviderRef{}) || disk.Provider == (ProviderRef{}) {
		return
	}
	if e.system(disk.Provider) != e.system(user.Provider) {
		l.diags = append(l.diags, mistake(r.rng, "Disk of another provider",
			"`%s` belongs to `%s`, and `%s` to `%s`. A VM and its disks have the same provider: change `provider` of one of them.",
			disk.Address, disk.Provider, user.Address, user.Provider))
		return
	}
	if other, ok := users[disk.Address]; ok {
		l.diags = append(l.diags, mistake(r.rng, "Disk used twice",
			"`%s` belongs to `%s` already, so `%s` cannot use it. Declare one disk per VM; if the VM has `for_each`, give it to the disk too.",
			disk.Address, other, user.Address))
		return
	}
	users[disk.Address] = user.Address
}
