package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Existing describes an existing object, for which Generate writes a block.
type Existing struct {
	To       Address     // its new address; without a key
	ID       string      // the ID by which an import finds it
	Provider ProviderRef // zero, or the built-in one: the block names none
	BuiltIn  string      // the type of the built-in provider, as in Inputs
	// Attrs holds the attributes that the object shows, by the names of the spec and in the form
	// of Resource.Want: sizes are numbers of bytes, references are addresses as text. The block
	// leaves out absent, null, unknown and sensitive values, and those that the system computes.
	Attrs cty.Value
}

// Generate writes the block of an object with an import block before it, formatted. It leaves out
// attributes with their default: once loaded, the block wants the attributes that the object
// shows. If a block cannot express an attribute, or a required one is not shown, the error names
// it; it names all of them.
func Generate(f Existing) ([]byte, error) {
	shape, ok := resourceShapes[f.To.Kind]
	switch {
	case !ok:
		return nil, fmt.Errorf("write a block for %s: there is no kind of resource %q", f.To, f.To.Kind)
	case f.To.Key != "":
		return nil, fmt.Errorf("write a block for %s: it is an instance of a for_each: write its block yourself", f.To)
	case strings.TrimSpace(f.ID) == "":
		return nil, fmt.Errorf("write a block for %s: the object to import has no id", f.To)
	}
	g := &generator{kind: f.To.Kind}
	file := hclwrite.NewEmptyFile()
	imports := file.Body().AppendNewBlock(importShape.Name, nil).Body()
	imports.SetAttributeTraversal("to", f.To.traversal())
	imports.SetAttributeValue("id", cty.StringVal(f.ID))
	file.Body().AppendNewline()
	body := file.Body().AppendNewBlock(shape.Name, []string{f.To.Name}).Body()
	if _, has := shape.attr("provider"); has && f.Provider != (ProviderRef{}) && f.Provider != builtIn(f.BuiltIn) {
		body.SetAttributeTraversal("provider", f.Provider.traversal())
	}
	g.block(body, shape, f.Attrs, "")
	if err := errors.Join(g.errs...); err != nil {
		return nil, fmt.Errorf("write a block for %s: %w", f.To, err)
	}
	return file.Bytes(), nil
}

// generator writes attributes and blocks, and collects errors.
type generator struct {
	kind Kind
	errs []error
}

func (g *generator) fail(path, format string, args ...any) {
	g.errs = append(g.errs, fmt.Errorf("`%s` "+format, append([]any{path}, args...)...))
}

// block writes the attributes and blocks that have a value; it is false if there are none.
func (g *generator) block(body *hclwrite.Body, shape Block, v cty.Value, path string) bool {
	wrote := false
	for _, a := range shape.Attrs {
		if a.Meta || a.Computed || a.Derived || a.Own {
			continue
		}
		wrote = g.attribute(body, a, partOf(v, a.Name), joinPath(path, a.Name)) || wrote
	}
	for _, nested := range shape.Blocks {
		wrote = g.nested(body, nested, v, joinPath(path, nested.Name)) || wrote
	}
	return wrote
}

func (g *generator) attribute(body *hclwrite.Body, a Attr, v cty.Value, path string) bool {
	if v == cty.NilVal {
		if a.Required && a.With == "" {
			g.fail(path, "is unknown, and a block requires it")
		}
		return false
	}
	value, err := convert.Convert(v, a.Type)
	if err != nil {
		g.fail(path, "is %s, not %s", describeType(v.Type()), expectedForm(a))
		return false
	}
	if a.Default != cty.NilVal && value.RawEquals(a.Default) {
		return false
	}
	tokens, problem := g.tokens(a, value)
	if problem != "" {
		g.fail(path, "%s", strings.TrimSuffix(problem, "."))
		return false
	}
	body.SetAttributeRaw(a.Name, tokens)
	return true
}

// tokens returns the text of a canonical value in a block, or why a block cannot express it: the
// rest of a sentence that begins with the attribute.
func (g *generator) tokens(a Attr, v cty.Value) (hclwrite.Tokens, string) {
	if a.Refers != nil {
		to, err := ParseAddress(v.AsString())
		if err != nil || !slices.Contains(a.Refers, to.Kind) {
			return nil, fmt.Sprintf("is %q, which is not the address of a %s", shorten(v.AsString()), kindsInWords(a.Refers))
		}
		return hclwrite.TokensForTraversal(to.traversal()), ""
	}
	if a.Form == Paths {
		return pathTokens(g.kind, v), ""
	}
	said := exported.value(a, v)
	again, problem := canonical(a, said)
	switch {
	case problem != "":
		return nil, problem
	case !again.RawEquals(v):
		return nil, fmt.Sprintf("is %s, which a block cannot express", FormatValue("", "", v))
	}
	return hclwrite.TokensForValue(said), ""
}

func pathTokens(kind Kind, v cty.Value) hclwrite.Tokens {
	var items []hclwrite.Tokens
	for _, path := range v.AsValueSlice() {
		if path.AsString() == allPaths {
			return hclwrite.TokensForIdentifier(allPaths)
		}
		if a, _ := AttrAt(kind, path.AsString()); a.Derived {
			continue
		}
		items = append(items, hclwrite.TokensForIdentifier(path.AsString()))
	}
	return hclwrite.TokensForTuple(items)
}

// nested writes the blocks of one name.
func (g *generator) nested(body *hclwrite.Body, shape Block, in cty.Value, path string) bool {
	v := partOf(in, shape.Name)
	if v == cty.NilVal {
		return false
	}
	if shape.Labelled {
		for _, label := range sortedKeys(v) {
			inner := hclwrite.NewBlock(shape.Name, []string{label})
			g.block(inner.Body(), shape, v.GetAttr(label), path+"."+label)
			appendBlock(body, inner)
		}
		return true
	}
	if shape.Repeated {
		if !v.CanIterateElements() {
			g.fail(path, "is %s, not a list", describeType(v.Type()))
			return false
		}
		for i, item := range v.AsValueSlice() {
			inner := hclwrite.NewBlock(shape.Name, nil)
			g.block(inner.Body(), shape, item, fmt.Sprintf("%s[%d]", path, i))
			appendBlock(body, inner)
		}
		return v.LengthInt() > 0
	}
	inner := hclwrite.NewBlock(shape.Name, nil)
	wrote := g.block(inner.Body(), shape, v, path)
	filled := shape.DefaultedWith != "" && partOf(in, shape.DefaultedWith) != cty.NilVal
	switch short := inner.Body().GetAttribute(shape.Shorthand); {
	case !wrote && (!shape.Optional || filled):
		return false
	case short != nil && len(inner.Body().Attributes()) == 1 && len(inner.Body().Blocks()) == 0:
		body.SetAttributeRaw(shape.Name, short.Expr().BuildTokens(nil))
	default:
		appendBlock(body, inner)
	}
	return true
}

// appendBlock adds a block, after an empty line if the body is not empty.
func appendBlock(body *hclwrite.Body, b *hclwrite.Block) {
	if len(body.Attributes())+len(body.Blocks()) > 0 {
		body.AppendNewline()
	}
	body.AppendBlock(b)
}

// partOf returns a part of an object that a block can express; NilVal: there is none.
func partOf(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || v.IsMarked() || !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NilVal
	}
	part := v.GetAttr(name)
	if part.IsMarked() || !part.IsKnown() || part.IsNull() || (part.Type().IsMapType() || part.Type().IsListType()) && (part.ContainsMarked() || !part.IsWhollyKnown()) {
		return cty.NilVal
	}
	return part
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// traversal returns a as a reference.
func (a Address) traversal() hcl.Traversal {
	return withKey(hcl.Traversal{hcl.TraverseRoot{Name: string(a.Kind)}, hcl.TraverseAttr{Name: a.Name}}, a.Key)
}

// traversal returns r as a reference.
func (r ProviderRef) traversal() hcl.Traversal {
	return withKey(hcl.Traversal{
		hcl.TraverseRoot{Name: "provider"}, hcl.TraverseAttr{Name: r.Type}, hcl.TraverseAttr{Name: r.Name},
	}, r.Key)
}

func withKey(t hcl.Traversal, key string) hcl.Traversal {
	if key == "" {
		return t
	}
	return append(t, hcl.TraverseIndex{Key: cty.StringVal(key)})
}
