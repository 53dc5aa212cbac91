package spec

import (
	"slices"
	"sync"

	"github.com/zclconf/go-cty/cty"
)

// fixed holds the parts of a shape that no spec changes. They are made once, since making the
// type of an object takes longer than filling it in, and when they are first used: vmctl also starts to run other programs.
type fixed struct {
	types   [exported + 1]cty.Type  // by projection
	leftOut [exported + 1]cty.Value // by projection, of a block that was left out and gets defaults
	// defaults lists the attributes of a block that was left out, with paths that begin in it.
	defaults []Default
}

// fix returns b with the fixed parts of it and of all of its blocks.
func fix(b Block) Block {
	b.Blocks = slices.Clone(b.Blocks)
	for i := range b.Blocks {
		b.Blocks[i] = fix(b.Blocks[i])
	}
	inner := b
	b.fixed = sync.OnceValue(func() *fixed {
		f := fixed{defaults: inner.leftOutDefaults()}
		for s := range exported + 1 {
			f.types[s], f.leftOut[s] = inner.makeType(s), inner.leftOut(s)
		}
		return &f
	})
	return b
}

// leftOut returns the part that belongs to s of a block without content. The shapes of its blocks
// are fixed.
func (b Block) leftOut(s projection) cty.Value {
	values := map[string]cty.Value{}
	for _, a := range b.Attrs {
		if !s.has(a, b) {
			continue
		}
		v := a.Default
		if v == cty.NilVal {
			v = cty.NullVal(a.Type)
		}
		values[a.Name] = s.value(a, v)
	}
	for _, nested := range b.Blocks {
		switch {
		case !s.hasBlock(nested):
		case nested.Labelled:
			values[nested.Name] = cty.NullVal(cty.Map(nested.fixed().types[s]))
		case nested.Repeated:
			values[nested.Name] = cty.ListValEmpty(nested.fixed().types[s])
		case nested.Optional:
			values[nested.Name] = cty.NullVal(nested.fixed().types[s])
		default:
			values[nested.Name] = nested.fixed().leftOut[s]
		}
	}
	return cty.ObjectVal(values)
}

// leftOutDefaults lists the attributes that have a default in a block without content.
func (b Block) leftOutDefaults() []Default {
	var all []Default
	for _, a := range b.Attrs {
		if a.Default != cty.NilVal && !a.Meta && !a.Computed {
			all = append(all, Default{Path: a.Name, Value: a.Default})
		}
	}
	for _, nested := range b.Blocks {
		if nested.Repeated || nested.Optional {
			continue
		}
		for _, d := range nested.fixed().defaults {
			d.Path = nested.Name + "." + d.Path
			all = append(all, d)
		}
	}
	return all
}

// leftOut decodes a block that was left out and gets its attributes' defaults: to an empty
// object, since no other block is one.
func (d *decoder) leftOut(shape Block, p location) cty.Value {
	if shape.fixed == nil {
		return d.block(nil, shape, p)
	}
	for _, known := range shape.fixed().defaults {
		d.defaults = append(d.defaults, Default{Path: p.path + "." + known.Path, Value: known.Value, Origin: d.origin})
	}
	return cty.EmptyObjectVal
}
