package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// decoder turns the body of a block into an object of all its attributes in
// canonical form, following the block's shape.
type decoder struct {
	ctx          *hcl.EvalContext
	files        *folder
	invalid      map[hclsyntax.Expression]bool // not to be evaluated
	owner        string                        // the name of the block: vm.web
	instance     string                        // vm.web["a"], for mistakes that others may not share; "": owner
	origin       string                        // of defaults
	shape        Block                         // of the whole block
	provider     string                        // its type
	supports     func(path string) bool        // nil: everything is supported
	uses         []Address                     // the resources that the block refers to
	quiet        bool                          // a value may be unknown because of a mistake
	diags        hcl.Diagnostics
	defaults     []Default
	resourceRefs []resourceRef
	missing      []Flaw
}

// location is the place of a nested block: its range and its path.
type location struct {
	rng   hcl.Range
	path  string // with indices; "" at the top
	plain string // without indices
}

func (p location) join(name string) location {
	if p.path == "" {
		return location{rng: p.rng, path: name, plain: name}
	}
	return location{rng: p.rng, path: p.path + "." + name, plain: p.plain + "." + name}
}

func (d *decoder) add(m *hcl.Diagnostic) { d.diags = append(d.diags, m) }

// block decodes a body; a nil body is a block that was left out.
func (d *decoder) block(body *hclsyntax.Body, shape Block, p location) cty.Value {
	if body == nil {
		body = &hclsyntax.Body{}
	}
	d.checkNames(body, shape, p)
	values := map[string]cty.Value{}
	for _, a := range shape.Attrs {
		if a.Meta || a.Computed || a.Derived {
			continue
		}
		if a.Own {
			values[a.Name] = cty.StringVal(d.instance)
			continue
		}
		if a.With != "" && body.Attributes[a.With] == nil {
			values[a.Name] = d.without(body.Attributes[a.Name], a, p)
			continue
		}
		values[a.Name] = d.attribute(body.Attributes[a.Name], a, shape, p)
	}
	for _, a := range shape.Attrs {
		if a.Derived && a.DigestOf != "" {
			values[a.Name] = d.derived(a, body, shape, values, p)
		}
	}
	for _, nested := range shape.Blocks {
		if i := slices.IndexFunc(body.Blocks, func(b *hclsyntax.Block) bool { return b.Type == nested.Name }); i >= 0 && nested.With != "" && body.Attributes[nested.With] == nil {
			d.add(d.misplaced(body.Blocks[i].DefRange(), nested.Name, nested.With))
		}
		values[nested.Name] = d.nested(body, nested, p.join(nested.Name))
	}
	for _, nested := range shape.Blocks {
		if nested.DefaultedWith != "" && values[nested.Name].IsNull() && !values[nested.DefaultedWith].IsNull() {
			values[nested.Name] = d.leftOut(nested, p.join(nested.Name))
		}
	}
	d.checkConflicts(body, shape, values)
	return cty.ObjectVal(values)
}

// without returns the value of an attribute whose Attr.With was left out: none may be written.
func (d *decoder) without(a *hclsyntax.Attribute, known Attr, p location) cty.Value {
	if a != nil {
		d.add(d.misplaced(a.NameRange, p.join(known.Name).path, known.With))
	}
	return cty.NullVal(known.Type)
}

// misplaced returns the mistake of an attribute or a block that needs another attribute beside it.
func (d *decoder) misplaced(rng hcl.Range, name, needs string) *hcl.Diagnostic {
	return mistake(rng, "Out of place", "`%s` of `%s` belongs to a %s with `%s`, which this one lacks. Remove it.", name, d.owner, d.shape.Name, needs)
}

// nested decodes the blocks of one name.
func (d *decoder) nested(body *hclsyntax.Body, shape Block, p location) cty.Value {
	var found []*hclsyntax.Block
	for _, b := range body.Blocks {
		if b.Type == shape.Name {
			found = append(found, b)
		}
	}
	if shape.Labelled {
		return d.labelled(found, shape, p)
	}
	for _, b := range found {
		if len(b.Labels) > 0 {
			d.add(mistake(b.LabelRanges[0], "Too many labels", "Write `%s { … }`.", b.Type))
		}
	}
	if shape.Repeated {
		var items []cty.Value
		for i, b := range found {
			items = append(items, d.block(b.Body, shape, location{
				rng: b.DefRange(), path: fmt.Sprintf("%s[%d]", p.path, i), plain: p.plain,
			}))
			d.required(b, shape, fmt.Sprintf("%s[%d]", p.path, i))
		}
		return cty.TupleVal(items)
	}
	if short, ok := body.Attributes[shape.Name]; ok && shape.Shorthand != "" {
		if len(found) > 0 {
			d.add(mistake(laterOf(short.SrcRange, found[0].DefRange()), "Declared twice",
				"`%s` of `%s` is declared at %s already. Write it as a block or as an attribute, not both.",
				shape.Name, d.owner, formatRange(earlierOf(short.SrcRange, found[0].DefRange()))))
		}
		return d.shorthand(short, shape, p)
	}
	if len(found) > 1 {
		d.add(mistake(found[1].DefRange(), "Declared twice", "`%s` of `%s` is declared at %s already. Merge the two blocks.",
			shape.Name, d.owner, formatRange(found[0].DefRange())))
	}
	switch {
	case len(found) > 0:
		p.rng = found[0].DefRange()
		d.checkSupport(found[0], shape, p)
		return d.block(found[0].Body, shape, p)
	case shape.Optional:
		return cty.NullVal(cty.DynamicPseudoType)
	default:
		return d.leftOut(shape, p)
	}
}

// longestLabel is the length of the longest label: files are named after it.
const longestLabel = 40

// labelled decodes blocks that have labels. It leaves out a block with a mistake in its label.
func (d *decoder) labelled(found []*hclsyntax.Block, shape Block, p location) cty.Value {
	items := map[string]cty.Value{}
	first := map[string]hcl.Range{}
	for _, b := range found {
		if len(b.Labels) != 1 {
			d.add(mistake(b.DefRange(), "Missing label", "Write `%s \"NAME\" { … }`, with one name.", b.Type))
			continue
		}
		label := b.Labels[0]
		if !labelPattern.MatchString(label) || len(label) > longestLabel {
			d.add(mistake(b.LabelRanges[0], "Invalid label",
				"`%s` of `%s` cannot be called %q: a name has letters, digits, `_` and `-`, begins with a letter or `_`, and is at most %d characters long.",
				b.Type, d.owner, label, longestLabel))
			continue
		}
		if earlier, twice := first[label]; twice {
			d.add(mistake(b.DefRange(), "Declared twice", "`%s \"%s\"` of `%s` is declared at %s already. Choose another name.",
				b.Type, label, d.owner, formatRange(earlier)))
			continue
		}
		first[label] = b.DefRange()
		at := p.join(label)
		at.rng, at.plain = b.DefRange(), p.plain
		values := d.block(b.Body, shape, at).AsValueMap()
		for _, a := range shape.Attrs {
			if a.Derived && a.DigestOf == "" {
				values[a.Name] = cty.NumberIntVal(int64(len(items) + 1))
			}
		}
		items[label] = cty.ObjectVal(values)
	}
	if len(items) == 0 {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return cty.ObjectVal(items)
}

// attribute decodes one attribute, which is nil where it was left out. A
// mistake makes it unknown.
func (d *decoder) attribute(a *hclsyntax.Attribute, known Attr, shape Block, p location) cty.Value {
	at := p.join(known.Name)
	if a == nil {
		return d.absent(known, at)
	}
	unknown := cty.UnknownVal(known.Type)
	if d.invalid[a.Expr] {
		return unknown
	}
	if known.Form == Paths {
		return d.paths(a.Expr, at)
	}
	v, diags := evaluate(a.Expr, d.ctx)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return unknown
	}
	owner := d.ownerOf(a.Expr)
	if known.Refers != nil && !v.IsMarked() { // only the address of the resource counts
		v, _ = v.UnmarkDeep()
	}
	if v.ContainsMarked() {
		return d.sensitiveAttribute(a, known, v, at)
	}
	if v.IsNull() {
		return d.absent(known, location{rng: a.Expr.Range(), path: at.path, plain: at.plain})
	}
	if known.Refers != nil {
		return d.resourceRef(v, known, location{rng: a.Expr.Range(), path: at.path, plain: at.plain}, owner)
	}
	v, m := canonical(known, v)
	if m != "" {
		d.add(mistake(a.Expr.Range(), summaryOf(known), "`%s` of `%s` %s", at.path, owner, m))
		return unknown
	}
	if !v.IsWhollyKnown() {
		if !d.quiet && (known.Known || known.File || policy.has(known, shape)) {
			d.add(unknownValue(a, at, owner))
		}
		return unknown
	}
	if known.Private {
		d.source(v.AsString(), at, owner)
		return v
	}
	if known.File {
		return d.file(v, known, location{rng: a.Expr.Range(), path: at.path}, owner)
	}
	if known.Form == Ceilings {
		d.ceilings(v, a.Expr, location{path: at.path}, owner)
	}
	if known.Form == FileOrURL {
		d.source(v.AsString(), at, owner)
	}
	return v
}

// unknownValue returns the mistake of a value that must be known.
func unknownValue(a *hclsyntax.Attribute, at location, owner string) *hcl.Diagnostic {
	return mistake(a.Expr.Range(), "Unknown value",
		"`%s` of `%s` must be known before anything is observed. Use variables, locals and attributes that the spec sets.", at.path, owner)
}

// sensitiveAttribute decodes an attribute with a sensitive value. All of the value is sensitive then.
func (d *decoder) sensitiveAttribute(a *hclsyntax.Attribute, known Attr, v cty.Value, at location) cty.Value {
	owner, unknown := d.ownerOf(a.Expr), cty.UnknownVal(known.Type)
	switch {
	case known.Public != "":
		d.add(mistake(a.Expr.Range(), "Sensitive value", "`%s` of `%s` must not be sensitive: %s.", at.path, owner, known.Public))
		return unknown
	case !known.Sensitive:
		d.add(mistake(a.Expr.Range(), "Sensitive value",
			"`%s` of `%s` would be kept in the state and shown in plans, so it must not be sensitive.", at.path, owner))
		return unknown
	}
	given := v
	v, _ = v.UnmarkDeep()
	if v.IsNull() {
		return d.absent(known, location{rng: a.Expr.Range(), path: at.path, plain: at.plain})
	}
	v, m := canonical(known, v)
	if m != "" {
		d.add(mistake(a.Expr.Range(), summaryOf(known), "`%s` of `%s` must be %s. It is sensitive and not shown.", at.path, owner, expectedForm(known)))
		return unknown
	}
	if !v.IsWhollyKnown() {
		if known.Known && !d.quiet {
			d.add(unknownValue(a, at, owner))
		}
		return Sensitive(unknown)
	}
	return withheldWhole(v, given)
}

// ownerOf returns the name of the block for a mistake in expr: instances that share the mistake
// share the text.
func (d *decoder) ownerOf(expr hclsyntax.Expression) string {
	for _, t := range hclsyntax.Variables(expr) {
		if t.RootName() == "each" && d.instance != "" {
			return d.instance
		}
	}
	return d.owner
}

// absent returns the value of an attribute that was left out, or is null.
func (d *decoder) absent(known Attr, p location) cty.Value {
	if known.Required {
		d.add(mistake(p.rng, "Missing attribute", "`%s` of `%s` is required: %s", p.path, d.owner, lowerFirst(known.Doc)))
		return cty.UnknownVal(known.Type)
	}
	if known.Default == cty.NilVal {
		return cty.NullVal(known.Type)
	}
	d.defaults = append(d.defaults, Default{Path: p.path, Value: known.Default, Origin: d.origin})
	return known.Default
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

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
