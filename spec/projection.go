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
		return b.fixed().types[s]
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
		switch inner := nested.projectedType(s); {
		case nested.Labelled:
			types[nested.Name] = cty.Map(inner)
		case nested.Repeated:
			types[nested.Name] = cty.List(inner)
		default:
			types[nested.Name] = inner
		}
	}
	return cty.Object(types)
}

// projected is a part of a decoded block.
type projected struct {
	cty.Value

	pending bool // it is not wholly known
	secret  bool // it has sensitive attributes
}

// add adds the facts about a part of p.
func (p *projected) add(part projected) {
	p.pending, p.secret = p.pending || part.pending, p.secret || part.secret
}

// project returns the part of a decoded block that belongs to s: an object of projectedType's type,
// but for Labelled blocks, which are an object where that has a map.
func (b Block) project(s projection, decoded cty.Value) projected {
	switch {
	case decoded.IsNull():
		return projected{Value: cty.NullVal(b.projectedType(s))}
	case b.fixed != nil && decoded.LengthInt() == 0:
		return projected{Value: b.fixed().leftOut[s]}
	}
	var whole projected
	values := map[string]cty.Value{}
	for _, a := range b.Attrs {
		if s.has(a, b) {
			v := decoded.GetAttr(a.Name)
			whole.add(projected{pending: !v.IsWhollyKnown(), secret: v.IsMarked()})
			values[a.Name] = s.value(a, v)
		}
	}
	for _, nested := range b.Blocks {
		if !s.hasBlock(nested) {
			continue
		}
		inner := decoded.GetAttr(nested.Name)
		if nested.Labelled {
			part := nested.projectLabelled(s, inner)
			whole.add(part)
			values[nested.Name] = part.Value
			continue
		}
		if !nested.Repeated {
			part := nested.project(s, inner)
			whole.add(part)
			values[nested.Name] = part.Value
			continue
		}
		var items []cty.Value
		for _, item := range inner.AsValueSlice() {
			part := nested.project(s, item)
			whole.add(part)
			items = append(items, part.Value)
		}
		values[nested.Name] = listOf(nested.projectedType(s), items)
	}
	whole.Value = cty.ObjectVal(values)
	return whole
}

// projectLabelled returns the part of decoded blocks with labels that belongs to s.
func (b Block) projectLabelled(s projection, decoded cty.Value) projected {
	if decoded.IsNull() {
		return projected{Value: cty.NullVal(cty.Map(b.projectedType(s)))}
	}
	var whole projected
	all := decoded.AsValueMap()
	for label, item := range all {
		part := b.project(s, item)
		whole.add(part)
		all[label] = part.Value
	}
	whole.Value = cty.ObjectVal(all)
	return whole
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
