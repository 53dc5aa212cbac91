package view

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// names lists the attributes of an object or the keys of a map, sorted. It lists none for a
// null or unknown value.
func names(v cty.Value) []string {
	if v == cty.NilVal || v.IsMarked() || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return nil
	}
	t := v.Type()
	if !t.IsObjectType() && !t.IsMapType() {
		return nil
	}
	var all []string
	for it := v.ElementIterator(); it.Next(); {
		key, _ := it.Element()
		all = append(all, key.AsString())
	}
	slices.Sort(all)
	return all
}

func attribute(v cty.Value, name string) cty.Value {
	if v.Type().IsMapType() {
		return v.Index(cty.StringVal(name))
	}
	return v.GetAttr(name)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// leaf is one attribute of a resource by its path.
type leaf struct {
	path  string
	value cty.Value
}

// leaves lists the attributes of v by path, those of nested objects too, in the order of
// their sorted names. Each element of a list of objects is one leaf.
func leaves(path string, v cty.Value) []leaf {
	if v == cty.NilVal {
		return nil
	}
	if v.IsMarked() || !v.IsKnown() || v.IsNull() {
		return []leaf{{path: path, value: v}}
	}
	t := v.Type()
	switch {
	case t.IsObjectType():
		var all []leaf
		for _, name := range names(v) {
			all = append(all, leaves(join(path, name), v.GetAttr(name))...)
		}
		return all
	case objectList(t):
		var all []leaf
		i := 0
		for it := v.ElementIterator(); it.Next(); i++ {
			_, element := it.Element()
			all = append(all, leaf{path: path + "[" + strconv.Itoa(i) + "]", value: element})
		}
		return all
	default:
		return []leaf{{path: path, value: v}}
	}
}

func objectList(t cty.Type) bool {
	switch {
	case t.IsListType() || t.IsSetType():
		return t.ElementType().IsObjectType()
	case t.IsTupleType():
		return len(t.TupleElementTypes()) == 0 || t.TupleElementType(0).IsObjectType()
	default:
		return false
	}
}

// Plain converts v for encoding/json. An unknown, null or absent value becomes nil, a
// sensitive one the string "(sensitive)".
func Plain(v cty.Value) any {
	switch {
	case v == cty.NilVal:
		return nil
	case v.IsMarked():
		return "(sensitive)"
	case !v.IsKnown() || v.IsNull():
		return nil
	}
	t := v.Type()
	switch {
	case t == cty.String:
		return v.AsString()
	case t == cty.Number:
		return number(v.AsBigFloat())
	case t == cty.Bool:
		return v.True()
	case t.IsObjectType() || t.IsMapType():
		all := map[string]any{}
		for _, name := range names(v) {
			all[name] = Plain(attribute(v, name))
		}
		return all
	case v.CanIterateElements():
		all := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, element := it.Element()
			all = append(all, Plain(element))
		}
		return all
	default:
		return nil
	}
}

// number keeps every digit, where a float64 would not.
func number(n *big.Float) json.Number { return json.Number(spec.FormatNumber(n)) }
