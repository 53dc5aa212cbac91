package planner

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// edits compares the managed attributes of an object, by path. The caller compares running and
// name.
func edits(before, after cty.Value, attrs map[string]providers.Attribute, running bool) []providers.Edit {
	all := differences(before, after, attrs)
	for i := range all {
		attr, _ := supportOf(all[i].Path, attrs)
		all[i].Verdict = judge(attr, spec.Revealed(all[i].Before), spec.Revealed(all[i].After), running)
		all[i] = withheldEdit(all[i])
	}
	return all
}

// differences returns the edits without their verdicts.
func differences(before, after cty.Value, attrs map[string]providers.Attribute) []providers.Edit {
	var all []providers.Edit
	for name, wanted := range parts(after) {
		switch name {
		case "running", "name":
		case providers.ProvisionAttr:
			all = append(all, provisionEdits(ctyread.Attr(before, name), wanted)...)
		default:
			all = append(all, differencesAt(name, ctyread.Attr(before, name), wanted, attrs)...)
		}
	}
	slices.SortFunc(all, func(a, b providers.Edit) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

func differencesAt(path string, before, after cty.Value, attrs map[string]providers.Attribute) []providers.Edit {
	attr, supported := supportOf(path, attrs)
	if attr.Computed || attrs[path].Optional && after.IsNull() || before == cty.NilVal && !supported {
		return nil
	}
	if isObject(before) && isObject(after) {
		var all []providers.Edit
		for name, wanted := range parts(after) {
			all = append(all, differencesAt(path+"."+name, ctyread.Attr(before, name), wanted, attrs)...)
		}
		return all
	}
	if before == cty.NilVal {
		before = nothing(after)
	}
	if sameAs(attrs[path], before, after) {
		return nil
	}
	return []providers.Edit{withheldEdit(providers.Edit{Path: path, Before: before, After: after})}
}

// nothing returns the value from before of an attribute that a record or an object lacks: null where
// after is null, else an empty list or map, or null.
func nothing(after cty.Value) cty.Value {
	switch t := after.Type(); {
	case after.IsNull():
		return cty.NullVal(t)
	case t.IsListType():
		return cty.ListValEmpty(t.ElementType())
	case t.IsMapType():
		return cty.MapValEmpty(t.ElementType())
	default:
		return cty.NullVal(t)
	}
}

func judge(attr providers.Attribute, before, after cty.Value, running bool) providers.Verdict {
	switch {
	case !after.IsWhollyKnown() && attr.StaysUp:
		return providers.Verdict{Applies: providers.Live, Reason: "known after apply"}
	case attr.Judge == nil:
		return providers.Verdict{Applies: providers.Replace, Reason: "cannot change after it was made"}
	case !after.IsWhollyKnown() && running:
		return providers.Verdict{Applies: providers.Restart, Reason: "if it changes: known after apply"}
	case !after.IsWhollyKnown():
		return providers.Verdict{Applies: providers.Live, Reason: "known after apply"}
	default:
		return attr.Judge(before, after, running)
	}
}

// supportOf returns the attribute of a provider type at a path, or at the nearest path above it.
func supportOf(path string, attrs map[string]providers.Attribute) (providers.Attribute, bool) {
	for {
		if a, ok := attrs[path]; ok {
			return a, true
		}
		dot := strings.LastIndexByte(path, '.')
		if dot < 0 {
			return providers.Attribute{}, false
		}
		path = path[:dot]
	}
}

// same reports whether two values mean the same: a list is equal to a tuple of
// equal elements, a sensitive value to one that is not, and null to null of any type. An unknown
// equals nothing.
func same(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	if a.IsNull() && b.IsNull() {
		return true
	}
	if a.RawEquals(b) {
		return b.IsWhollyKnown()
	}
	if a, b = spec.Revealed(a), spec.Revealed(b); !b.IsWhollyKnown() {
		return false
	}
	if a.Type().Equals(b.Type()) {
		return a.RawEquals(b)
	}
	converted, err := convert.Convert(a, b.Type())
	return err == nil && converted.RawEquals(b)
}

// sameAs reports whether two values of an attribute mean the same.
func sameAs(attr providers.Attribute, a, b cty.Value) bool {
	return same(a, b) || attr.Unordered && sameInAnyOrder(a, b)
}

// sameInAnyOrder reports whether two lists have the same elements.
func sameInAnyOrder(a, b cty.Value) bool {
	left, all := ctyread.List(spec.Revealed(a)), ctyread.List(spec.Revealed(b))
	if len(left) != len(all) {
		return false
	}
	for _, one := range all {
		i := slices.IndexFunc(left, func(other cty.Value) bool { return same(other, one) })
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// overlaid is a value with the values that a system shows in their place.
type overlaid struct {
	cty.Value

	differs bool // from the value before
}

// overlay returns base with the values that the system shows in their place. A sensitive value stays
// marked.
func overlay(base, shown cty.Value) overlaid {
	switch {
	case shown == cty.NilVal:
		return overlaid{Value: base}
	case !isObject(base):
		v := marked(shown, base)
		if base != cty.NilVal && (base.RawEquals(v) || base.IsNull() && v.IsNull()) {
			return overlaid{Value: base}
		}
		return overlaid{Value: v, differs: true}
	case !isObject(shown):
		return overlaid{Value: shown, differs: true}
	}
	var merged map[string]cty.Value // nil: nothing differs so far
	for name, value := range parts(shown) {
		part := overlay(ctyread.Attr(base, name), value)
		if !part.differs {
			continue
		}
		if merged == nil {
			merged = attributesOf(base)
		}
		merged[name] = part.Value
	}
	if merged == nil {
		return overlaid{Value: base}
	}
	return overlaid{Value: cty.ObjectVal(merged), differs: true}
}

// with returns an object with one attribute set.
func with(v cty.Value, name string, value cty.Value) cty.Value {
	if old := ctyread.Attr(v, name); old != cty.NilVal && old.RawEquals(value) {
		return v
	}
	m := attributesOf(v)
	m[name] = value
	return cty.ObjectVal(m)
}

// attributesOf returns the attributes of an object, none of another value. The caller may change the map.
func attributesOf(v cty.Value) map[string]cty.Value {
	if !isObject(v) || v.LengthInt() == 0 { // for which AsValueMap returns nil
		return map[string]cty.Value{}
	}
	return v.AsValueMap()
}

func isObject(v cty.Value) bool {
	return v != cty.NilVal && v.Type().IsObjectType() && v.IsKnown() && !v.IsNull()
}

// parts yields the attributes of an object, in any order.
func parts(v cty.Value) iter.Seq2[string, cty.Value] {
	return func(yield func(string, cty.Value) bool) {
		if !isObject(v) {
			return
		}
		for name := range v.Type().AttributeTypes() {
			if !yield(name, v.GetAttr(name)) {
				return
			}
		}
	}
}

func attributeNames(v cty.Value) []string {
	if !isObject(v) {
		return nil
	}
	return slices.Sorted(maps.Keys(v.Type().AttributeTypes()))
}

// alteration is one thing that a change alters: an attribute by its path, the mark or the keys.
type alteration struct {
	name string
	providers.Verdict
}

// alterations lists all that a change alters, by name.
func (c *Change) alterations() []alteration {
	var all []alteration
	for _, e := range c.Edits {
		all = append(all, alteration{e.Path, e.Verdict})
	}
	if c.Mark != nil {
		all = append(all, alteration{"mark", providers.Verdict{Applies: providers.Live, Reason: c.Mark.Reason}})
	}
	if c.Rekey != nil {
		all = append(all, alteration{"ssh.keys", *c.Rekey})
	}
	slices.SortFunc(all, func(a, b alteration) int { return cmp.Compare(a.name, b.name) })
	return all
}

// maximum returns the most disruptive way in which any of the alterations applies.
func maximum(all []alteration) providers.Applies {
	var most providers.Applies
	for _, a := range all {
		if a.Applies.Rank() > most.Rank() {
			most = a.Applies
		}
	}
	return most
}

func (d *differ) nameEdit(c *Change) []providers.Edit {
	name := nameOf(c.Change.Want)
	if name == "" || name == c.Object.Name || c.ignores("name") {
		return nil
	}
	return []providers.Edit{{
		Path: "name", Before: cty.StringVal(c.Object.Name), After: cty.StringVal(name),
		Verdict: providers.Verdict{Applies: providers.Replace, Reason: "cannot change after it was made"},
	}}
}

// markEdit returns the mark that a change writes, if the mark of its object does not name its
// address: the object was moved here, is imported, or has lost its mark.
func markEdit(c *Change) *providers.MarkEdit {
	owner := c.Object.Owner
	switch {
	case c.importing:
		return &providers.MarkEdit{Reason: "it is imported: vmctl marks it as its own"}
	case owner == nil && c.Record != nil && !c.Record.Reserved:
		return &providers.MarkEdit{Reason: "somebody took its owner mark off: it is marked again"}
	case owner == nil || owner.Address == c.Address:
		return nil
	case c.Record == nil:
		return &providers.MarkEdit{Before: owner.Address, Reason: "a moved block leads here from the address that the owner mark names"}
	default:
		return &providers.MarkEdit{Before: owner.Address, Reason: "the record was moved, and the owner mark still names the address before"}
	}
}

// usedEdits returns an edit of each attribute that names an object which this plan makes anew,
// such as a disk: a running guest has the old one open. An object whose attribute cannot change is replaced, too. It leaves out the VM that the object is
// inside of, since the object goes with it.
func (d *differ) usedEdits(c *Change, attrs map[string]providers.Attribute, running bool) []providers.Edit {
	var all []providers.Edit
	for _, a := range c.Needs {
		used, decided := d.decided[a]
		if !decided || a == c.Inside || !d.scope[a] || used.Blocked != nil || c.Record == nil || !slices.Contains(c.Record.Uses, a) {
			continue
		}
		why := ""
		switch used.Action {
		case providers.ReplaceIt:
			why = fmt.Sprintf("%s is replaced", a)
		case providers.Create:
			why = fmt.Sprintf("%s is made again", a)
		case providers.Update, providers.Import, providers.RestartIt, providers.Destroy, providers.Start, providers.Stop,
			providers.Adopt, providers.Forget, providers.Release, providers.Recover, providers.NoOp:
			continue
		}
		for _, path := range spec.RefersTo(c.Kind, c.Change.Want, a) {
			e := providers.Edit{Path: path, Before: ctyread.Attr(c.Prior, path), After: c.Change.Want.GetAttr(path)}
			e.Verdict = providers.Verdict{Applies: providers.Live, Reason: why}
			switch attr, _ := supportOf(path, attrs); {
			case attr.Judge == nil:
				e.Verdict.Applies = providers.Replace
			case running:
				e.Verdict.Applies = providers.Restart
			}
			all = append(all, e)
		}
	}
	return all
}

// asItRuns returns the edits of an object whose running configuration differs from its stored
// one. An edit that the running object has already needs no restart.
func asItRuns(configured, running []providers.Edit) []providers.Edit {
	all := slices.Clone(running)
	for _, e := range configured {
		if slices.ContainsFunc(running, func(r providers.Edit) bool { return r.Path == e.Path }) {
			continue
		}
		if e.Verdict.Applies == providers.Restart {
			e.Verdict = providers.Verdict{Applies: providers.Live, Reason: "it runs with this already: the next start would not"}
		}
		all = append(all, e)
	}
	return all
}

// rekeying returns how a guest gets other keys.
func rekeying(t providers.Type, running bool) *providers.Verdict {
	v := providers.Verdict{Applies: providers.Refused, Reason: "vmctl gives it no keys"}
	if t.Rekey != nil {
		v = t.Rekey(running)
	}
	return &v
}

// joined returns edits together with others. A path in both gets the more disruptive verdict.
func joined(edits, others []providers.Edit) []providers.Edit {
	for _, e := range others {
		i := slices.IndexFunc(edits, func(have providers.Edit) bool { return have.Path == e.Path })
		switch {
		case i < 0:
			edits = append(edits, e)
		case edits[i].Verdict.Applies.Rank() < e.Verdict.Applies.Rank():
			edits[i].Verdict = e.Verdict
		}
	}
	return edits
}

// foundEdits returns the edits that the system of an object has found. An address that goes back to its record has none.
func (d *differ) foundEdits(c *Change) []providers.Edit {
	if d.options.Revert[c.Address] {
		return nil
	}
	return c.Object.Edits
}

// providerEdit returns the edit that would move an object to another system. It is always
// refused.
func (d *differ) providerEdit(c *Change) []providers.Edit {
	key := d.world.wanted[c.Address]
	if key == "" || key == c.System || c.To != nil {
		return nil
	}
	before, after := providerText(c, d.world.systems[key].Settings)
	return []providers.Edit{{
		Path: "provider", Before: cty.StringVal(before), After: cty.StringVal(after),
		Verdict: providers.Verdict{
			Applies: providers.Refused,
			Reason:  staysPut,
		},
	}}
}

// providerText returns the present and the wanted provider of an object as text. If they have the
// same name but different settings, it adds the settings that differ.
func providerText(c *Change, settings cty.Value) (before, after string) {
	before, after = c.Provider.String(), c.Want.Provider.String()
	if c.Record != nil {
		before = c.Record.Provider.String()
	}
	if before != after {
		return before, after
	}
	var was, is []string
	for _, name := range attributeNames(settings) {
		old, now := ctyread.Attr(c.Settings, name), settings.GetAttr(name)
		if old == cty.NilVal || same(old, now) {
			continue
		}
		was = append(was, name+" "+show("provider", name, old))
		is = append(is, name+" "+show("provider", name, now))
	}
	if len(is) == 0 {
		return before, after
	}
	return before + " (" + strings.Join(was, ", ") + ")", after + " (" + strings.Join(is, ", ") + ")"
}
