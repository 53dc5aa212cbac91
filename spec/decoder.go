package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// decoder turns the body of a block into an object of all its attributes in
// canonical form, following the block's shape.
type decoder struct {
	ctx      *hcl.EvalContext
	files    *folder
	bad      map[hclsyntax.Expression]bool // not to be evaluated
	owner    string                        // what the block is called: vm.web
	instance string                        // vm.web["a"], for mistakes that others may not share; "": owner
	origin   string                        // of defaults
	provider string                        // its type
	supports func(path string) bool        // nil: everything is supported
	quiet    bool                          // what is unknown may be so because of a mistake
	diags    hcl.Diagnostics
	defaults []Default
}

// place is where a nested block is.
type place struct {
	rng   hcl.Range
	path  string // with indices; "" at the top
	plain string // without indices
}

func (p place) join(name string) place {
	if p.path == "" {
		return place{rng: p.rng, path: name, plain: name}
	}
	return place{rng: p.rng, path: p.path + "." + name, plain: p.plain + "." + name}
}

func (d *decoder) add(m *hcl.Diagnostic) { d.diags = append(d.diags, m) }

// block decodes a body; a nil body is a block that was left out.
func (d *decoder) block(body *hclsyntax.Body, shape Block, p place) cty.Value {
	if body == nil {
		body = &hclsyntax.Body{}
	}
	d.checkNames(body, shape, p)
	values := map[string]cty.Value{}
	for _, a := range shape.Attrs {
		if a.Meta || a.Computed || a.Derived {
			continue
		}
		values[a.Name] = d.attribute(body.Attributes[a.Name], a, shape, p)
	}
	for _, a := range shape.Attrs {
		if a.Derived {
			values[a.Name] = d.digest(values[a.DigestOf])
		}
	}
	for _, nested := range shape.Blocks {
		values[nested.Name] = d.nested(body, nested, p.join(nested.Name))
	}
	return cty.ObjectVal(values)
}

// nested decodes the blocks of one name.
func (d *decoder) nested(body *hclsyntax.Body, shape Block, p place) cty.Value {
	var found []*hclsyntax.Block
	for _, b := range body.Blocks {
		if b.Type == shape.Name {
			found = append(found, b)
		}
	}
	for _, b := range found {
		if len(b.Labels) > 0 {
			d.add(mistake(b.LabelRanges[0], "Too many labels", "Write `%s { … }`.", b.Type))
		}
	}
	if shape.Repeated {
		var items []cty.Value
		for i, b := range found {
			items = append(items, d.block(b.Body, shape, place{
				rng: b.DefRange(), path: fmt.Sprintf("%s[%d]", p.path, i), plain: p.plain,
			}))
		}
		return cty.TupleVal(items)
	}
	if len(found) > 1 {
		d.add(mistake(found[1].DefRange(), "Declared twice", "`%s` of `%s` stands at %s already. Put its attributes together.",
			shape.Name, d.owner, at(found[0].DefRange())))
	}
	switch {
	case len(found) > 0:
		p.rng = found[0].DefRange()
		d.checkSupport(found[0], p)
		return d.block(found[0].Body, shape, p)
	case shape.Optional:
		return cty.NullVal(cty.DynamicPseudoType)
	default:
		return d.block(nil, shape, p)
	}
}

// found is what stands in a body: an attribute or a block.
type found struct {
	name string
	rng  hcl.Range
	kind string
}

// called names the block at path for the beginning of a sentence.
func (d *decoder) called(path string) string {
	if path == "" {
		return "`" + d.owner + "`"
	}
	return "`" + path + "` of `" + d.owner + "`"
}

// checkNames reports what stands in a body and not in its shape.
func (d *decoder) checkNames(body *hclsyntax.Body, shape Block, p place) {
	for _, a := range attributesOf(body) {
		known, ok := shape.attr(a.Name)
		switch {
		case ok && known.Computed:
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is set by the system. Remove it; references can read it.", a.Name, d.owner))
		case ok && known.Derived:
			d.add(mistake(a.NameRange, "Read-only attribute", "`%s` of `%s` is the digest of `%s`, which vmctl computes. Remove it.", a.Name, d.owner, known.DigestOf))
		case ok:
			d.checkAttrSupport(a, known, shape, p)
		default:
			d.unknownName(found{a.Name, a.NameRange, "attribute"}, shape, p.path)
		}
	}
	for _, b := range body.Blocks {
		if _, ok := shape.block(b.Type); !ok {
			d.unknownName(found{b.Type, b.TypeRange, "block"}, shape, p.path)
		}
	}
}

func (d *decoder) unknownName(found found, shape Block, path string) {
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
	default:
		d.add(mistake(rng, "Unknown "+kind, "%s has no %s `%s`.%s", d.called(path), kind, name, didYouMean(name, namesIn(shape))))
	}
}

// namesIn lists what may be written in a block.
func namesIn(shape Block) []string {
	var names []string
	for _, a := range shape.Attrs {
		if !a.Computed && !a.Derived {
			names = append(names, a.Name)
		}
	}
	for _, b := range shape.Blocks {
		names = append(names, b.Name)
	}
	return append(names, shape.Later...)
}

// checkAttrSupport asks whether the provider supports what was written.
func (d *decoder) checkAttrSupport(a *hclsyntax.Attribute, known Attr, shape Block, p place) {
	if d.supports == nil || !wanted.has(known, shape) {
		return
	}
	if path := p.join(a.Name).plain; !d.supports(path) {
		d.add(mistake(a.NameRange, "Unsupported attribute", "Provider %s does not support `%s`.", d.provider, path))
	}
}

// checkSupport asks the same about a block in which nothing is written.
func (d *decoder) checkSupport(b *hclsyntax.Block, p place) {
	if d.supports != nil && len(b.Body.Attributes) == 0 && !d.supports(p.plain) {
		d.add(mistake(b.TypeRange, "Unsupported block", "Provider %s does not support `%s`.", d.provider, p.plain))
	}
}

// attribute decodes one attribute, which is nil where it was left out. A
// mistake makes it unknown.
func (d *decoder) attribute(a *hclsyntax.Attribute, known Attr, shape Block, p place) cty.Value {
	at := p.join(known.Name)
	if a == nil {
		return d.absent(known, at)
	}
	unknown := cty.UnknownVal(known.Type)
	if d.bad[a.Expr] {
		return unknown
	}
	v, diags := evaluate(a.Expr, d.ctx)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return unknown
	}
	owner := d.ownerOf(a.Expr)
	if v.ContainsMarked() {
		d.add(mistake(a.Expr.Range(), "Sensitive value",
			"`%s` of `%s` would be kept in the state and shown in plans, so it must not be sensitive.", at.path, owner))
		return unknown
	}
	if v.IsNull() {
		return d.absent(known, place{rng: a.Expr.Range(), path: at.path, plain: at.plain})
	}
	v, m := canonical(known, v)
	if m != "" {
		d.add(mistake(a.Expr.Range(), summaryOf(known), "`%s` of `%s` %s", at.path, owner, m))
		return unknown
	}
	if !v.IsWhollyKnown() {
		if !d.quiet && (known.Known || known.File || policy.has(known, shape)) {
			d.add(mistake(a.Expr.Range(), "Unknown value",
				"`%s` of `%s` must be known before anything is observed. Use variables, locals and attributes that the spec sets.", at.path, owner))
		}
		return unknown
	}
	if known.File {
		return d.file(v, known, place{rng: a.Expr.Range(), path: at.path}, owner)
	}
	if known.Form == Ceilings {
		d.ceilings(v, a.Expr, place{path: at.path}, owner)
	}
	return v
}

// ownerOf is what the block is called in a mistake of expr: instances that
// share the mistake share the text.
func (d *decoder) ownerOf(expr hclsyntax.Expression) string {
	for _, t := range hclsyntax.Variables(expr) {
		if t.RootName() == "each" && d.instance != "" {
			return d.instance
		}
	}
	return d.owner
}

// absent is the value of an attribute that was left out, or is null.
func (d *decoder) absent(known Attr, p place) cty.Value {
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

// file checks that a file can be read.
func (d *decoder) file(v cty.Value, known Attr, p place, owner string) cty.Value {
	if _, err := d.files.digest(v.AsString()); err != nil {
		d.add(mistake(p.rng, "Unreadable file", "`%s` of `%s` is %q, which cannot be used: %s. %s",
			p.path, owner, v.AsString(), err, fileHint(v.AsString(), err)))
		return cty.UnknownVal(known.Type)
	}
	return v
}

// fileHint says what to do about a file that cannot be read.
func fileHint(path string, err error) string {
	switch {
	case strings.HasPrefix(path, "~"):
		return "`~` means nothing here: write the whole path."
	case errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path):
		return "Relative paths are read from the folder of the spec."
	case errors.Is(err, fs.ErrNotExist):
		return "Correct the path, or put the file there."
	case errors.Is(err, fs.ErrPermission):
		return "Give yourself the right to read it, for example with `chmod u+r`."
	default:
		return "Name a file with content."
	}
}

// digest is the SHA-256 of the file that v names.
func (d *decoder) digest(v cty.Value) cty.Value {
	switch {
	case !v.IsKnown():
		return cty.UnknownVal(cty.String)
	case v.IsNull():
		return cty.NullVal(cty.String)
	}
	sum, err := d.files.digest(v.AsString())
	if err != nil {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(sum)
}

// ceilings checks that the keys of a map are paths of attributes.
func (d *decoder) ceilings(v cty.Value, expr hclsyntax.Expression, p place, owner string) {
	shape := vmShape
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

// keyRange is where a key stands in a map that is written out, else the whole of it.
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
		if wanted.hasBlock(b) {
			paths = append(paths, prefix+b.Name)
			paths = append(paths, managed(b, prefix+b.Name+".")...)
		}
	}
	return paths
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
