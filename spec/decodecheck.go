package spec

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// bodyItem is an attribute or a block in a body.
type bodyItem struct {
	name string
	rng  hcl.Range
	kind string
}

// subject returns the name of the block at path for the beginning of a sentence.
func (d *decoder) subject(path string) string {
	if path == "" {
		return "`" + d.owner + "`"
	}
	return "`" + path + "` of `" + d.owner + "`"
}

// checkNames reports the attributes and blocks of a body that may not stand there: unknown,
// read-only and unsupported ones.
func (d *decoder) checkNames(body *hclsyntax.Body, shape Block, p location) {
	for _, a := range attributesOf(body) {
		known, ok := shape.attr(a.Name)
		nested, isBlock := shape.block(a.Name)
		switch {
		case isBlock && nested.Shorthand != "":
		case ok && known.Own:
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is its own address. Remove it; references can read it.", a.Name, d.owner))
		case ok && known.Computed:
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is set by the system. Remove it; references can read it.", a.Name, d.owner))
		case ok && known.Derived && known.DigestOf == "":
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is its place among the blocks of this kind. Remove it.", a.Name, d.owner))
		case ok && known.Derived:
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is the digest of `%s`, which vmctl computes. Remove it.", a.Name, d.owner, known.DigestOf))
		case ok:
			d.checkAttrSupport(a, known, shape, p)
		default:
			d.unknownName(bodyItem{a.Name, a.NameRange, "attribute"}, shape, p.path)
		}
	}
	for _, b := range body.Blocks {
		if _, ok := shape.block(b.Type); !ok {
			d.unknownName(bodyItem{b.Type, b.TypeRange, "block"}, shape, p.path)
		}
	}
}

func (d *decoder) unknownName(found bodyItem, shape Block, path string) {
	name, rng, kind := found.name, found.rng, found.kind
	_, isAttr := shape.attr(name)
	_, isBlock := shape.block(name)
	switch {
	case slices.Contains(shape.Later, name):
		d.add(mistake(rng, "Not built in yet", "`%s` of a `%s` is not built in yet.", name, shape.Name))
	case isBlock:
		d.add(mistake(rng, "Block expected", "`%s` is a block: write `%s { … }` without `=`.", name, name))
	case isAttr:
		d.add(mistake(rng, "Attribute expected", "`%s` is an attribute: write `%s = …`.", name, name))
	case name == "count":
		d.add(mistake(rng, "Unknown "+kind, "There is no `count`: use `for_each`, for example `for_each = toset([\"a\", \"b\"])`."))
	case name == "provider" && shape.In != nil && shape.In.Attr == "":
		d.add(mistake(rng, "Unknown "+kind, "`%s` is on this host. Remove `provider`.", d.owner))
	case name == "provider" && shape.In != nil:
		d.add(mistake(rng, "Unknown "+kind, "`%s` has the provider of the %s that it is inside of. Remove `provider`.", d.owner, kindsInWords(shape.In.Kinds)))
	default:
		d.add(mistake(rng, "Unknown "+kind, "%s has no %s `%s`.%s", d.subject(path), kind, name, DidYouMean(name, namesIn(shape))))
	}
}

// namesIn lists the names that may be written in a block.
func namesIn(shape Block) []string {
	var names []string
	for _, a := range shape.Attrs {
		if !a.Computed && !a.Derived && !a.Own {
			names = append(names, a.Name)
		}
	}
	for _, b := range shape.Blocks {
		names = append(names, b.Name)
	}
	return append(names, shape.Later...)
}

// checkAttrSupport reports an attribute that the provider does not support.
func (d *decoder) checkAttrSupport(a *hclsyntax.Attribute, known Attr, shape Block, p location) {
	if d.supports == nil || !wanted.has(known, shape) {
		return
	}
	if path := p.join(a.Name).plain; !d.supports(path) {
		d.add(mistake(a.NameRange, "Unsupported attribute", "Provider %s does not support `%s`. Remove it, or use another provider.", d.provider, path))
	}
}

// checkSupport reports a block without attributes that the provider does not support. It leaves
// out policies, since they do not concern the provider.
func (d *decoder) checkSupport(b *hclsyntax.Block, shape Block, p location) {
	if d.supports != nil && wanted.hasBlock(shape) && len(b.Body.Attributes) == 0 && !d.supports(p.plain) {
		d.add(mistake(b.TypeRange, "Unsupported block", "Provider %s does not support `%s`. Remove it, or use another provider.", d.provider, p.plain))
	}
}

// required reports the required attributes that are missing in a block and that decoding does not
// check.
func (d *decoder) required(b *hclsyntax.Block, shape Block, path string) {
	for _, a := range shape.Attrs {
		if _, ok := b.Body.Attributes[a.Name]; a.Meta && a.Required && !ok {
			d.add(mistake(b.DefRange(), "Missing attribute", "%s needs `%s`: %s", d.subject(path), a.Name, lowerFirst(a.Doc)))
		}
	}
}

// checkConflicts reports each pair of blocks that exclude each other (Block.ConflictsWith), and each block without the
// attribute that it needs (Block.Needs).
func (d *decoder) checkConflicts(body *hclsyntax.Body, shape Block, values map[string]cty.Value) {
	for i, one := range shape.Blocks {
		if needs, ok := values[one.Needs]; ok && needs.IsNull() && !values[one.Name].IsNull() {
			d.add(mistake(rangeOf(body, one.Name), "Block without effect",
				"`%s` has `%s`, but no `%s`, without which it has no effect. Remove it, or set `%s`.", d.owner, one.Name, one.Needs, one.Needs))
		}
		for _, other := range shape.Blocks[i+1:] {
			if one.ConflictsWith != other.Name || values[one.Name].IsNull() || values[other.Name].IsNull() {
				continue
			}
			d.add(mistake(laterOf(rangeOf(body, one.Name), rangeOf(body, other.Name)), "Conflicting blocks",
				"`%s` has both `%s` and `%s`, but boots from only one of them. Remove one.", d.owner, one.Name, other.Name))
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

// supports returns the function that asks the type of provider of a place about the attributes of a block;
// nil: everything is supported, or nothing is known of the type. It reports a kind that the type
// does not support at all.
func (w *evaluation) supports(n *node, at placement) func(path string) bool {
	kind, typ := Kind(n.resource.Type), at.provider.Type
	if w.in.Supports == nil || !w.in.hasType(typ) {
		return nil
	}
	if !w.in.Supports(at.manager(), kind, "") {
		w.diags = append(w.diags, mistake(n.resource.TypeRange, "Unsupported kind", "Provider %s does not support `%s` blocks. Remove it, or use another provider.", typ, kind))
		return nil
	}
	return func(path string) bool { return w.in.Supports(at.manager(), kind, path) }
}
