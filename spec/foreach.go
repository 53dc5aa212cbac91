package spec

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// item is one key of a for_each.
type item struct {
	Key   string
	value cty.Value
}

// forEach evaluates for_each, and returns its items in the order of the keys; false: it found a
// mistake. A block without for_each has one item without a key.
func (w *evaluation) forEach(n *node, r *result, ctx *hcl.EvalContext) ([]item, bool) {
	expr := n.resource.forEach
	if expr == nil {
		return []item{{}}, true
	}
	if n.invalid[expr] {
		return nil, false
	}
	if w.base != nil && w.base != w && w.base.result(n).items != nil {
		return w.base.result(n).items, true
	}
	value, diags := evaluate(expr, ctx)
	w.diags = append(w.diags, diags...)
	if diags.HasErrors() {
		return nil, false
	}
	items, summary, problem := forEachItems(value, "resources")
	if summary == unknownForEach && r.invalid {
		return nil, false
	}
	if problem != "" {
		w.diags = append(w.diags, mistake(expr.Range(), summary, "`for_each` of `%s` %s", n.name, problem))
		return nil, false
	}
	if !slices.ContainsFunc(items, func(i item) bool { return !i.value.IsWhollyKnown() }) {
		r.items = items
	}
	return items, true
}

const unknownForEach = "Unknown for_each"

// forEachItems returns the items of a for_each value, or the summary and text of its mistake.
// what names the thing that each key makes.
func forEachItems(value cty.Value, what string) (items []item, summary, problem string) {
	if value.IsMarked() {
		return nil, "Sensitive for_each", "is sensitive, but its keys are shown in addresses."
	}
	ty := value.Type()
	isMap := ty.IsMapType() || ty.IsObjectType()
	var elements []cty.Value // of a set, which sorts them whenever they are asked for
	if ty.IsSetType() {
		elements = ctyread.List(value)
	}
	switch {
	case !value.IsKnown() || slices.ContainsFunc(elements, func(v cty.Value) bool { return !v.IsWhollyKnown() }):
		return nil, unknownForEach, "must be known before anything is observed: it decides how many " + what + " exist. Use variables, locals and attributes that the spec sets."
	case value.IsNull():
		return nil, "Invalid for_each", "is null. Write a map, or a set of strings; `{}` makes no instance."
	case ty.IsTupleType() || ty.IsListType():
		return nil, "Invalid for_each", "is a list, and list elements have no keys: write `toset([…])`."
	case !isMap && !ty.IsSetType():
		return nil, "Invalid for_each", "is " + describeType(ty) + ". Write a map, or a set of strings like `toset([\"a\", \"b\"])`."
	}
	if isMap {
		for key, v := range value.AsValueMap() {
			items = append(items, item{Key: key, value: v})
		}
	}
	for _, v := range elements {
		if v.IsNull() || v.Type() != cty.String {
			return nil, "Invalid for_each", "is a set with elements that are not strings. Write `toset([\"a\", \"b\"])`."
		}
		items = append(items, item{Key: v.AsString(), value: v})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.Key, b.Key) })
	for _, it := range items {
		if it.Key == "" {
			return nil, "Invalid for_each", "has an empty key. Every key must be at least one character."
		}
	}
	return items, "", ""
}
