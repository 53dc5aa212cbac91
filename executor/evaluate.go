package executor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// changedAttributes names the attributes that were known when the plan was made and have another value
// now. It shows no values.
func changedAttributes(planned, now cty.Value) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(planned.Type().AttributeTypes())) {
		if !equalWhereKnown(planned.GetAttr(name), now.GetAttr(name)) {
			all = append(all, fmt.Sprintf("%s is not what it was when the plan was made", name))
		}
	}
	return all
}

// equalWhereKnown reports whether now equals planned, as far as planned is known.
func equalWhereKnown(planned, now cty.Value) bool {
	switch {
	case !planned.IsKnown():
		return true
	case planned.IsNull() || now.IsNull():
		return planned.IsNull() == now.IsNull()
	case planned.Type().IsObjectType() && now.Type().IsObjectType():
		for name, v := range planned.AsValueMap() {
			if !now.Type().HasAttribute(name) || !equalWhereKnown(v, now.GetAttr(name)) {
				return false
			}
		}
		return true
	case planned.IsWhollyKnown():
		return planned.RawEquals(now)
	case planned.CanIterateElements() && now.CanIterateElements():
		before, after := planned.AsValueSlice(), now.AsValueSlice()
		return len(before) == len(after) && slices.EqualFunc(before, after, equalWhereKnown)
	default:
		return true
	}
}

// fillUnknown returns planned, with the values of now where planned is unknown.
func fillUnknown(planned, now cty.Value) cty.Value {
	switch {
	case planned.IsWhollyKnown():
		return planned
	case planned.IsKnown() && !planned.IsNull() && planned.Type().IsObjectType() && now.Type().IsObjectType() && !now.IsNull():
		m := planned.AsValueMap()
		for name, v := range m {
			if now.Type().HasAttribute(name) {
				m[name] = fillUnknown(v, now.GetAttr(name))
			}
		}
		return cty.ObjectVal(m)
	default:
		return now
	}
}
