package spec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// ceilings checks that the keys of a map are paths of attributes.
func (d *decoder) ceilings(v cty.Value, expr hclsyntax.Expression, p location, owner string) {
	shape := d.shape
	for _, path := range sortedKeys(v) {
		p.rng = d.keyRange(expr, path)
		switch {
		case slices.Contains(shape.Later, path):
			d.add(mistake(p.rng, "Not built in yet", "`%s` of a `%s` is not built in yet.", path, shape.Name))
		case !isManaged(shape, path):
			d.add(mistake(p.rng, "Unknown attribute", "`%s` of `%s` names `%s`, which is no attribute of a %s that can be edited.%s",
				p.path, owner, path, shape.Name, didYouMean(path, managed(shape, ""))))
		}
	}
}

// keyRange returns the range of a key in a map that is written out, else the range of the whole
// expression.
func (d *decoder) keyRange(expr hclsyntax.Expression, key string) hcl.Range {
	object, ok := expr.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return expr.Range()
	}
	for _, item := range object.Items {
		if v, diags := item.KeyExpr.Value(d.ctx); !diags.HasErrors() && v.RawEquals(cty.StringVal(key)) {
			return item.KeyExpr.Range()
		}
	}
	return expr.Range()
}

// isManaged reports whether path is an attribute or a block of Resource.Want.
func isManaged(shape Block, path string) bool { return slices.Contains(managed(shape, ""), path) }

// managed lists the paths of the attributes and blocks of Resource.Want.
func managed(shape Block, prefix string) []string {
	var paths []string
	for _, a := range shape.Attrs {
		if wanted.has(a, shape) && !a.Derived {
			paths = append(paths, prefix+a.Name)
		}
	}
	for _, b := range shape.Blocks {
		if !wanted.hasBlock(b) {
			continue
		}
		paths = append(paths, prefix+b.Name)
		if !b.Repeated { // a list is edited as a whole
			paths = append(paths, managed(b, prefix+b.Name+".")...)
		}
	}
	return paths
}
