package planner

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// policyChanged reports whether the policy in the record differs from the wanted one. An
// attribute that an older build did not know counts as its default.
func (c *Change) policyChanged() bool {
	if c.Record == nil || c.Record.Policy != cty.NilVal && c.Policy != cty.NilVal && c.Record.Policy.RawEquals(c.Policy) {
		return false
	}
	return !same(filled(c.Kind, "", c.Record.Policy, c.Policy), c.Policy)
}

// PolicyEdits lists the differences between a recorded and a wanted policy, by path. An attribute
// that the record lacks counts as its default.
func PolicyEdits(kind spec.Kind, recorded, wanted cty.Value) []providers.Edit {
	var all []providers.Edit
	var compare func(path string, before, after cty.Value)
	compare = func(path string, before, after cty.Value) {
		if isObject(after) {
			for _, name := range attributeNames(after) {
				compare(join(path, name), ctyread.Attr(before, name), after.GetAttr(name))
			}
			return
		}
		if before == cty.NilVal {
			before = nothing(after)
		}
		if !same(before, after) {
			all = append(all, providers.Edit{Path: path, Before: before, After: after, Verdict: providers.Verdict{Applies: providers.Live, Reason: "policy"}})
		}
	}
	compare("", filled(kind, "", recorded, wanted), wanted)
	return all
}

// filled returns the policy of a record with the attributes that it lacks, where the wanted
// policy has their defaults.
func filled(kind spec.Kind, path string, recorded, wanted cty.Value) cty.Value {
	if !isObject(recorded) || !isObject(wanted) {
		return recorded
	}
	for _, name := range attributeNames(wanted) {
		at, value := join(path, name), wanted.GetAttr(name)
		switch before := ctyread.Attr(recorded, name); {
		case before != cty.NilVal:
			recorded = with(recorded, name, filled(kind, at, before, value))
		case value.IsNull() && value.Type().IsMapType(): // an older build did not have such blocks, and there are none
			recorded = with(recorded, name, value)
		case isObject(value): // a block that an older build did not have
			recorded = with(recorded, name, filled(kind, at, cty.EmptyObjectVal, value))
		case isDefault(kind, at, value):
			recorded = with(recorded, name, value)
		}
	}
	return recorded
}

func isDefault(kind spec.Kind, path string, v cty.Value) bool {
	a, ok := spec.AttrAt(kind, path)
	return ok && a.Default != cty.NilVal && same(a.Default, v)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
