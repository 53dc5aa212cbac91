package spec

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// toCollection returns the function that converts a value to a collection. It calls uniform on
// its argument first: to find the common type of n different elements, cty compares each pair of
// them.
func toCollection(ty cty.Type, uniform func(cty.Value) cty.Value) function.Function {
	convert := stdlib.MakeToFunc(ty)
	return function.New(&function.Spec{
		Description: convert.Description(),
		Params:      convert.Params(),
		Type: func(args []cty.Value) (cty.Type, error) {
			return convert.ReturnTypeForValues([]cty.Value{uniform(args[0])})
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return convert.Call([]cty.Value{uniform(args[0])})
		},
	})
}

// uniformList returns a tuple of elements of one type as a list, and any other value as it is.
func uniformList(v cty.Value) cty.Value {
	if !v.Type().IsTupleType() || !v.IsKnown() || v.IsNull() || !haveOneType(v.Type().TupleElementTypes()) {
		return v
	}
	return cty.ListVal(v.AsValueSlice())
}

// uniformMap returns an object of attributes of one type as a map, and any other value as it is.
func uniformMap(v cty.Value) cty.Value {
	if !v.Type().IsObjectType() || !v.IsKnown() || v.IsNull() || !haveOneType(slices.Collect(maps.Values(v.Type().AttributeTypes()))) {
		return v
	}
	return cty.MapVal(v.AsValueMap())
}

// haveOneType reports whether all types are one, and known.
func haveOneType(all []cty.Type) bool {
	return len(all) > 0 && all[0] != cty.DynamicPseudoType &&
		!slices.ContainsFunc(all[1:], func(t cty.Type) bool { return !t.Equals(all[0]) })
}
