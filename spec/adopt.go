package spec

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// Adopted is a value that the block of a resource is to have.
type Adopted struct {
	Path  string
	Value cty.Value // in the form of Resource.Want; null: the block is to have none
}

// Adopt returns a file in which the block of a resource has values, and keeps all else as it is. It
// fails where a block cannot say so: the resource is an instance of a for_each, the value stands in
// an expression, or spec itself derives it. The error names each such value.
func Adopt(src []byte, filename string, to Address, all []Adopted) ([]byte, error) {
	file, diags := hclwrite.ParseConfig(src, filename, hcl.InitialPos)
	if diags.HasErrors() {
		return nil, fmt.Errorf("write the block of %s: %w", to, diags)
	}
	shape, ok := resourceShapes[to.Kind]
	block := file.Body().FirstMatchingBlock(string(to.Kind), []string{to.Name})
	switch {
	case !ok || block == nil:
		return nil, fmt.Errorf("write the block of %s: %s has none", to, filename)
	case to.Key != "":
		return nil, fmt.Errorf("write the block of %s: it is an instance of a for_each: change its block yourself", to)
	}
	g := &generator{kind: to.Kind}
	for _, one := range all {
		g.adopt(block.Body(), shape, strings.Split(one.Path, "."), one)
	}
	if err := errors.Join(g.errs...); err != nil {
		return nil, fmt.Errorf("write the block of %s: %w", to, err)
	}
	out := file.Bytes()
	if bytes.Equal(hclwrite.Format(src), src) {
		out = hclwrite.Format(out)
	}
	return out, nil
}

// adopt sets one value; path is the rest of its path, from this block on.
func (g *generator) adopt(body *hclwrite.Body, shape Block, path []string, to Adopted) {
	if a, is := shape.attr(path[0]); is {
		if len(path) > 1 { // an entry of a map
			g.fail(to.Path, "is a part of `%s`: change it yourself", path[0])
			return
		}
		g.adoptAttribute(body, a, a.Name, to)
		return
	}
	nested, is := shape.block(path[0])
	switch {
	case !is:
		g.fail(to.Path, "is not in the language")
	case nested.Labelled:
		block := body.FirstMatchingBlock(nested.Name, path[1:min(2, len(path))])
		if len(path) < 3 || block == nil {
			g.fail(to.Path, "is a whole block: change it yourself")
			return
		}
		g.adopt(block.Body(), nested, path[2:], to)
	case nested.Repeated || len(path) == 1:
		g.adoptBlocks(body, nested, to)
	case len(path) == 2 && path[1] == nested.Shorthand && body.GetAttribute(nested.Name) != nil:
		a, _ := nested.attr(nested.Shorthand)
		g.adoptAttribute(body, a, nested.Name, to)
	default:
		block := body.FirstMatchingBlock(nested.Name, nil)
		if block == nil {
			if isNothing(to.Value) {
				return
			}
			block = body.AppendNewBlock(nested.Name, nil)
		}
		g.adopt(block.Body(), nested, path[1:], to)
	}
}

func (g *generator) adoptAttribute(body *hclwrite.Body, a Attr, name string, to Adopted) {
	old := body.GetAttribute(name)
	switch {
	case a.Derived || a.Computed || a.Own || a.Meta:
		g.fail(to.Path, "is not written in a block")
		return
	case old != nil && a.Refers == nil && a.Form != Paths && !isConstant(old):
		g.fail(to.Path, "stands in an expression, `%s`: change it there", strings.TrimSpace(string(old.Expr().BuildTokens(nil).Bytes())))
		return
	case isNothing(to.Value):
		if old != nil {
			body.RemoveAttribute(name)
		}
		return
	}
	value, err := convert.Convert(to.Value, a.Type)
	if err != nil {
		g.fail(to.Path, "is %s, not %s", describeType(to.Value.Type()), expectedForm(a))
		return
	}
	tokens, problem := g.tokens(a, value)
	if problem != "" {
		g.fail(to.Path, "%s", strings.TrimSuffix(problem, "."))
		return
	}
	body.SetAttributeRaw(name, tokens)
}

// adoptBlocks writes the blocks of one name anew.
func (g *generator) adoptBlocks(body *hclwrite.Body, shape Block, to Adopted) {
	for _, old := range body.Blocks() {
		if old.Type() != shape.Name {
			continue
		}
		for name, attribute := range old.Body().Attributes() {
			if a, _ := shape.attr(name); a.Refers == nil && !isConstant(attribute) {
				g.fail(to.Path, "stands in an expression, `%s`: change it there", strings.TrimSpace(string(attribute.Expr().BuildTokens(nil).Bytes())))
				return
			}
		}
		body.RemoveBlock(old)
	}
	if !isNothing(to.Value) {
		g.nested(body, shape, cty.ObjectVal(map[string]cty.Value{shape.Name: to.Value}), to.Path)
	}
}

func isNothing(v cty.Value) bool { return v == cty.NilVal || v.IsNull() }

// isConstant reports whether an attribute stands there as a literal: no variable and no function.
func isConstant(a *hclwrite.Attribute) bool {
	text := a.Expr().BuildTokens(nil).Bytes()
	expr, diags := hclsyntax.ParseExpression(text, "", hcl.InitialPos)
	if diags.HasErrors() {
		return false
	}
	_, diags = expr.Value(nil)
	return !diags.HasErrors()
}
