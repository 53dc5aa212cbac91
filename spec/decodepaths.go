package spec

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// allPaths stands for every attribute.
const allPaths = "all"

// paths reads attributes that are named as they stand in the block, without
// quotes: [memory, boot.cmdline], or all. They come sorted, each once.
func (d *decoder) paths(expr hclsyntax.Expression, p location) cty.Value {
	unknown := cty.UnknownVal(cty.List(cty.String))
	if hcl.ExprAsKeyword(expr) == allPaths {
		return cty.ListVal([]cty.Value{cty.StringVal(allPaths)})
	}
	items, diags := hcl.ExprList(expr)
	if diags.HasErrors() {
		if v, diags := evaluate(expr, emptyContext()); !diags.HasErrors() && v.IsNull() {
			return cty.ListValEmpty(cty.String)
		}
		d.add(mistake(expr.Range(), "Invalid value", "`%s` of `%s` names attributes: write for example `[memory]`, or `%s`.", p.path, d.owner, allPaths))
		return unknown
	}
	var names []string
	for _, item := range items {
		name, m := d.pathIn(item, p)
		if m != nil {
			d.add(m)
			continue
		}
		names = append(names, name)
	}
	if len(names) < len(items) {
		return unknown
	}
	for _, name := range slices.Clone(names) {
		names = append(names, d.derivedFrom(name)...)
	}
	slices.Sort(names)
	var values []cty.Value
	for _, name := range slices.Compact(names) {
		values = append(values, cty.StringVal(name))
	}
	return listOf(cty.String, values)
}

// derivedFrom lists the digests of the attribute at a path: a spec that ignores a file ignores
// its content.
func (d *decoder) derivedFrom(path string) []string {
	shape, prefix := d.shape, ""
	if at := strings.LastIndexByte(path, '.'); at >= 0 {
		shape, _ = shape.block(path[:at])
		prefix = path[:at+1]
	}
	var all []string
	for _, a := range shape.Attrs {
		if a.Derived && prefix+a.DigestOf == path {
			all = append(all, prefix+a.Name)
		}
	}
	return all
}

// pathIn reads one attribute's name, or returns its mistake.
func (d *decoder) pathIn(expr hcl.Expression, p location) (string, *hcl.Diagnostic) {
	t, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() {
		return "", mistake(expr.Range(), "Invalid value", "`%s` of `%s` names attributes without quotes: write for example `[memory]`.", p.path, d.owner)
	}
	var steps []string
	for _, step := range t {
		switch step := step.(type) {
		case hcl.TraverseRoot:
			steps = append(steps, step.Name)
		case hcl.TraverseAttr:
			steps = append(steps, step.Name)
		default:
			return "", mistake(expr.Range(), "Invalid value", "`%s` of `%s` names an element by its index, which may change: name the whole list, `%s`.",
				p.path, d.owner, strings.Join(steps, "."))
		}
	}
	path := strings.Join(steps, ".")
	choices := ignorable(d.shape)
	switch _, known := AttrAt(Kind(d.shape.Name), path); {
	case slices.Contains(choices, path):
		return path, nil
	case path == allPaths:
		return "", mistake(expr.Range(), "Invalid value", "`%s` cannot be combined with other names: write `%s = %s`.", allPaths, p.path[strings.LastIndexByte(p.path, '.')+1:], allPaths)
	case slices.Contains(d.shape.Later, path):
		return "", mistake(expr.Range(), "Not built in yet", "`%s` of a `%s` is not built in yet.", path, d.shape.Name)
	case known:
		return "", mistake(expr.Range(), "Nothing to ignore", "`%s` of `%s` names `%s`, which %s", p.path, d.owner, path, d.whyNotIgnorable(path))
	default:
		return "", mistake(expr.Range(), "Unknown attribute", "`%s` of `%s` names `%s`, which is no attribute of a %s that can be edited.%s",
			p.path, d.owner, path, d.shape.Name, DidYouMean(path, choices))
	}
}

// ignorable lists the paths that ignore_changes may name: all managed paths but the run state,
// which no edit changes.
func ignorable(shape Block) []string {
	return slices.DeleteFunc(managed(shape, ""), func(path string) bool { return path == "running" })
}

// whyNotIgnorable returns why changes of an attribute cannot be ignored.
func (d *decoder) whyNotIgnorable(path string) string {
	a, _ := AttrAt(Kind(d.shape.Name), path)
	top, _, nested := strings.Cut(path, ".")
	outer, _ := d.shape.block(top)
	switch {
	case path == "running":
		return "a plan cannot ignore: it starts and stops VMs. Remove it from the list."
	case a.Computed || a.Own || a.Derived:
		return "vmctl reads and never changes. Remove it from the list."
	case nested && outer.Repeated:
		return "is part of a list. Name the whole list, `" + top + "`."
	case a.Meta:
		return "is no setting of the object. Remove it from the list."
	default:
		return "is no setting of the object. Remove it from the list."
	}
}

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
				p.path, owner, path, shape.Name, DidYouMean(path, managed(shape, ""))))
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
