package planner

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// Before returns the attributes of the object of a change, as its system shows them, else as they were
// applied; cty.NilVal: there is no object. What is sensitive in the spec or in the record is marked.
func (c *Change) Before() cty.Value {
	o := c.Object
	if o == nil {
		return cty.NilVal
	}
	shown := o.Attrs
	if c.Record == nil && c.Want == nil {
		shown = concealed(c.Kind, shown)
	}
	before := overlay(c.Prior, shown).Value
	if !isObject(before) {
		before = cty.EmptyObjectVal
	}
	if c.Change.Want != cty.NilVal {
		before = markedLike(before, c.Change.Want)
	}
	before = with(before, "name", cty.StringVal(o.Name))
	if o.Running != nil {
		before = with(before, "running", cty.BoolVal(*o.Running))
	}
	return before
}

// After returns the attributes that the object of a change has once the change is carried out;
// cty.NilVal: there is none any more. A value that only apply will know is unknown.
func (c *Change) After() cty.Value {
	before := c.Before()
	switch c.Action {
	case providers.Destroy:
		return cty.NilVal
	case providers.Forget, providers.Release:
		return before
	case providers.Create, providers.ReplaceIt:
		before = cty.NilVal
	case providers.Update, providers.RestartIt, providers.Start, providers.Stop, providers.Import, providers.Adopt, providers.Recover, providers.NoOp:
	}
	if c.Change.Want == cty.NilVal {
		return before
	}
	after := attributesOf(c.Change.Want)
	shape, _ := spec.Shape(c.Kind)
	for _, a := range shape.Attrs {
		if !a.Computed {
			continue
		}
		after[a.Name] = cty.UnknownVal(a.Type)
		if was := ctyread.Attr(before, a.Name); was != cty.NilVal && !c.isDisruptive() {
			after[a.Name] = was
		}
	}
	if name, has := after["name"]; has && name.IsNull() && c.Name != "" {
		after["name"] = cty.StringVal(c.Name)
	}
	return cty.ObjectVal(after)
}

// isDisruptive reports whether a change may alter the computed values of its object.
func (c *Change) isDisruptive() bool {
	switch c.Action {
	case providers.NoOp, providers.Update, providers.Adopt, providers.Import, providers.Forget, providers.Release:
		return false
	case providers.Create, providers.ReplaceIt, providers.RestartIt, providers.Start, providers.Stop, providers.Recover, providers.Destroy:
		return true
	}
	panic("unknown action " + string(c.Action))
}

// SameAt reports whether a value has another one at a dotted path; null and nothing are the same.
func SameAt(v cty.Value, path string, want cty.Value) bool {
	is := at(v, path)
	if want == cty.NilVal || want.IsNull() {
		return is == cty.NilVal || is.IsNull() || !isSomething(is)
	}
	return is != cty.NilVal && same(is, want)
}
