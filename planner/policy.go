package planner

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
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
