package spec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// shorthand decodes `NAME = value`, which stands for a block with one attribute. A
// null is a block that was left out.
func (d *decoder) shorthand(a *hclsyntax.Attribute, shape Block, p location) cty.Value {
	p.rng = a.SrcRange
	if v, diags := evaluate(a.Expr, d.ctx); !d.invalid[a.Expr] && !diags.HasErrors() && v.IsNull() {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	values := map[string]cty.Value{}
	for _, known := range shape.Attrs {
		if known.Name != shape.Shorthand {
			values[known.Name] = d.attribute(nil, known, shape, p)
			continue
		}
		if path := p.join(known.Name).plain; d.supports != nil && !d.supports(path) {
			d.add(mistake(a.NameRange, "Unsupported attribute", "Provider %s does not support `%s`. Remove it, or use another provider.", d.provider, p.plain))
		}
		values[known.Name] = d.attribute(a, known, shape, p)
	}
	return cty.ObjectVal(values)
}

// checkConflicts reports each pair of blocks that exclude each other (Block.ConflictsWith).
func (d *decoder) checkConflicts(body *hclsyntax.Body, shape Block, values map[string]cty.Value) {
	for i, one := range shape.Blocks {
		for _, other := range shape.Blocks[i+1:] {
			if one.ConflictsWith != other.Name || values[one.Name].IsNull() || values[other.Name].IsNull() {
				continue
			}
			d.add(mistake(laterOf(rangeOf(body, one.Name), rangeOf(body, other.Name)), "Too much to boot from",
				"`%s` has `%s` and `%s`, and boots from one of them only. Remove one.", d.owner, one.Name, other.Name))
		}
	}
}

// rangeOf returns the range of an attribute or a block in a body.
func rangeOf(body *hclsyntax.Body, name string) hcl.Range {
	if a, ok := body.Attributes[name]; ok {
		return a.SrcRange
	}
	for _, b := range body.Blocks {
		if b.Type == name {
			return b.DefRange()
		}
	}
	return body.SrcRange
}

func laterOf(a, b hcl.Range) hcl.Range {
	if compareRanges(&a, &b) > 0 {
		return a
	}
	return b
}

func earlierOf(a, b hcl.Range) hcl.Range {
	if compareRanges(&a, &b) > 0 {
		return b
	}
	return a
}
