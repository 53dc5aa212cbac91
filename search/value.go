package search

import "github.com/zclconf/go-cty/cty"

var noValue = cty.NilVal //nolint:gochecknoglobals // it is constant

func isTrue(v cty.Value, name string) bool {
	b := part(v, name)
	return b.IsKnown() && !b.IsNull() && b.True()
}

// part returns an attribute of an object, null if there is none.
func part(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return v.GetAttr(name)
}

func elements(v cty.Value, name string) []cty.Value {
	if list := part(v, name); !list.IsNull() && list.IsKnown() {
		return list.AsValueSlice()
	}
	return nil
}

func number(v cty.Value, name string) int64 {
	n := part(v, name)
	if n.IsNull() || !n.IsKnown() {
		return 0
	}
	i, _ := n.AsBigFloat().Int64()
	return i
}

// text returns an attribute as a template writes it, "" if it is null or not known.
func text(v cty.Value, name string) string {
	t := part(v, name)
	if t.IsNull() || !t.IsKnown() {
		return ""
	}
	if t.Type() == cty.Number {
		return t.AsBigFloat().Text('f', -1)
	}
	return t.AsString()
}
