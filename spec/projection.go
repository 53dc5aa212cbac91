package spec

import (
	"maps"

	"github.com/zclconf/go-cty/cty"
)

// projection is one of the values that a decoded block is split into.
type projection int

const (
	wanted   projection = iota // the object
	policy                     // how vmctl treats it
	exported                   // the value of references, as a spec would write it
)

// WantType returns the type of Resource.Want of a kind.
func WantType(kind Kind) cty.Type { return resourceShapes[kind].projectedType(wanted) }

// PolicyType returns the type of Resource.Policy of a kind.
func PolicyType(kind Kind) cty.Type { return resourceShapes[kind].projectedType(policy) }

// ValueTypes returns the types of the attributes that a record of a kind can have: those of
// Resource.Want, and the computed ones.
func ValueTypes(kind Kind) map[string]cty.Type {
	shape := resourceShapes[kind]
	types := maps.Clone(shape.projectedType(wanted).AttributeTypes())
	for _, a := range shape.Attrs {
		if a.Computed {
			types[a.Name] = a.Type
		}
	}
	return types
}

// ShapeVersions returns the version of the shape of each kind. An attribute that is added keeps the
// version; one that is renamed, removed, or gets another type or unit needs the next version, and an
// upgrade of recorded values in package state.
func ShapeVersions() map[Kind]int {
	versions := make(map[Kind]int, len(resourceShapes))
	for kind, shape := range resourceShapes {
		versions[kind] = shape.Version
	}
	return versions
}

// SettingsType returns the type of Provider.Attrs of a type of provider; of an unknown one, an
// object without attributes.
func SettingsType(typ string) cty.Type { return providerShapes[typ].projectedType(wanted) }

// has reports whether a belongs to s, as an attribute of in.
func (s projection) has(a Attr, in Block) bool {
	switch {
	case a.Meta || a.Computed:
		return false
	case a.Own:
		return s == exported
	}
	switch s {
	case wanted:
		return !a.Policy && !in.Policy
	case policy:
		return a.Policy || in.Policy
	case exported:
		return true
	default:
		panic("spec: unknown projection")
	}
}

// hasBlock reports whether any attribute of b belongs to s.
func (s projection) hasBlock(b Block) bool {
	for _, a := range b.Attrs {
		if s.has(a, b) {
			return true
		}
	}
	for _, nested := range b.Blocks {
		if s.hasBlock(nested) {
			return true
		}
	}
	return false
}

// typeOf returns the type of a on s.
func (s projection) typeOf(a Attr) cty.Type {
	if s == exported && a.Unit != Plain {
		return cty.String
	}
	return a.Type
}

// projectedType returns the type of the part of one block that belongs to s.
func (b Block) projectedType(s projection) cty.Type {
	if b.fixed != nil {
		return b.fixed.types[s]
	}
	return b.makeType(s)
}

func (b Block) makeType(s projection) cty.Type {
	types := map[string]cty.Type{}
	for _, a := range b.Attrs {
		if s.has(a, b) {
			types[a.Name] = s.typeOf(a)
		}
	}
	for _, nested := range b.Blocks {
		if !s.hasBlock(nested) {
			continue
		}
		types[nested.Name] = nested.projectedType(s)
		if nested.Repeated {
			types[nested.Name] = cty.List(types[nested.Name])
		}
	}
	return cty.Object(types)
}

// project returns the part of a decoded block that belongs to s: an object of projectedType's type.
// known reports whether it is wholly known.
func (b Block) project(s projection, decoded cty.Value) (object cty.Value, known bool) {
	switch {
	case decoded.IsNull():
		return cty.NullVal(b.projectedType(s)), true
	case b.fixed != nil && decoded.LengthInt() == 0:
		return b.fixed.leftOut[s], true
	}
	known = true
	values := map[string]cty.Value{}
	for _, a := range b.Attrs {
		if s.has(a, b) {
			v := decoded.GetAttr(a.Name)
			known = known && v.IsWhollyKnown()
			values[a.Name] = s.value(a, v)
		}
	}
	for _, nested := range b.Blocks {
		if !s.hasBlock(nested) {
			continue
		}
		inner := decoded.GetAttr(nested.Name)
		if !nested.Repeated {
			part, all := nested.project(s, inner)
			values[nested.Name], known = part, known && all
			continue
		}
		var items []cty.Value
		for _, item := range inner.AsValueSlice() {
			part, all := nested.project(s, item)
			items, known = append(items, part), known && all
		}
		values[nested.Name] = listOf(nested.projectedType(s), items)
	}
	return cty.ObjectVal(values), known
}

// value returns the value of a on s.
func (s projection) value(a Attr, v cty.Value) cty.Value {
	if s != exported || a.Unit == Plain {
		return v
	}
	switch {
	case !v.IsKnown():
		return cty.UnknownVal(cty.String)
	case v.IsNull():
		return cty.NullVal(cty.String)
	}
	n, _ := v.AsBigFloat().Int64()
	if a.Unit == Bytes {
		return cty.StringVal(FormatSize(n))
	}
	return cty.StringVal(FormatDuration(n))
}

// listOf returns a list of items of one type. It may be empty.
func listOf(element cty.Type, items []cty.Value) cty.Value {
	if len(items) == 0 {
		return cty.ListValEmpty(element)
	}
	return cty.ListVal(items)
}
