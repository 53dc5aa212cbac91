package executor

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// changedAttributes names the attributes that were known when the plan was made and have another
// value now. It shows no values.
func changedAttributes(planned, now cty.Value) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(planned.Type().AttributeTypes())) {
		if !equalWhereKnown(planned.GetAttr(name), now.GetAttr(name)) {
			all = append(all, fmt.Sprintf("%s has changed since the plan was made", name))
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

// resolved returns the resource of a change, evaluated now that the resources that it refers to
// were applied. It fails if a value is still unknown, or differs from the planned one.
func (x *execution) resolved(c *planner.Change) (spec.Resource, error) {
	resource, err := x.Resolve(c.Address, x.values)
	if err != nil {
		return resource, err
	}
	resource = resource.WithRead(c.Want.Want) // the plan kept the text that was applied
	if !resource.Want.IsWhollyKnown() {
		return resource, fmt.Errorf("resolve %s: an attribute is still unknown after the resources that it refers to were applied", c.Address)
	}
	if seen := changedAttributes(c.Want.Want, resource.Want); len(seen) > 0 {
		return resource, &providers.Problem{
			Outcome: providers.Stale, Code: "stale", Seen: seen,
			Next: providers.Say("plan again to see the new value"),
			Err:  errors.New("stale plan: a value that it refers to differs from the planned one"),
		}
	}
	return resource, nil
}

// uses maps each address that a change uses to the object found there, as the records name it now. A record of what is being made
// names what was planned: an object that was found after a run which was cut short may have another ID.
func (x *execution) uses(c *planner.Change) map[spec.Address]providers.Used {
	now := maps.Clone(c.Uses)
	for a, used := range now {
		if r, ok := x.records[a]; ok && !r.Reserved {
			used.ID, used.Name = providers.ID(r.ID), r.Name
			now[a] = used
		}
	}
	return now
}

// needsWanted reports whether a step needs the wanted values. A sinking step does not need them, nor does one that prepares, forgets
// or settles: the values may not be known by then.
func needsWanted(s planner.Step) bool {
	return !s.Phase.Sinks() && s.Phase != providers.PhasePrepare && s.Op != planner.OpForget && s.Op != planner.OpSettle
}
