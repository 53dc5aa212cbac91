package spec

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/pattern"
)

// usesSecret reports whether an expression refers to a value that is sensitive, or that has a sensitive part. A name that
// ctx does not have is a variable of a `for` around the expression: it counts as sensitive if inFor says so.
func usesSecret(expr hcl.Expression, ctx *hcl.EvalContext, inFor func() bool) bool {
	return slices.ContainsFunc(expr.Variables(), func(t hcl.Traversal) bool {
		for c := ctx; c != nil; c = c.Parent() {
			if v, ok := c.Variables[t.RootName()]; ok {
				return followed(v, t[1:]).ContainsMarked()
			}
		}
		return inFor()
	})
}

// never is an answer for usesSecret: no `for` is around the expression.
func never() bool { return false }

// always is another one: what the `for` goes through may be sensitive.
func always() bool { return true }

// followed returns the part of a value to which the steps lead, as far as they can be followed.
func followed(v cty.Value, steps hcl.Traversal) cty.Value {
	for _, step := range steps {
		next, diags := step.TraversalStep(v)
		if diags.HasErrors() {
			return v
		}
		v = next
	}
	return v
}

// withLostMarks marks a value of an expression where hcl has dropped the mark of an index: an element of an object that a
// secret has chosen is sensitive. An object or tuple that is written out is marked by element.
func withLostMarks(v cty.Value, expr hclsyntax.Expression, ctx *hcl.EvalContext) cty.Value {
	if !hasSecretIndex(expr, ctx) {
		return v
	}
	switch expr := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		if !v.Type().IsTupleType() || v.IsMarked() || !v.IsKnown() {
			return Sensitive(v)
		}
		all := v.AsValueSlice()
		for i := range all {
			all[i] = withLostMarks(all[i], expr.Exprs[i], ctx)
		}
		return cty.TupleVal(all)
	case *hclsyntax.ObjectConsExpr:
		if !v.Type().IsObjectType() || v.IsMarked() || !v.IsKnown() {
			return Sensitive(v)
		}
		all := v.AsValueMap()
		for _, item := range expr.Items {
			key, diags := item.KeyExpr.Value(ctx)
			if diags.HasErrors() || key.Type() != cty.String || key.IsMarked() || hasSecretIndex(item.KeyExpr, ctx) {
				return Sensitive(v)
			}
			all[key.AsString()] = withLostMarks(all[key.AsString()], item.ValueExpr, ctx)
		}
		return cty.ObjectVal(all)
	default:
		return Sensitive(v)
	}
}

// hasSecretIndex reports whether an expression has an index that refers to something sensitive, except in what
// nonsensitive() is given, and in what the functions are given that evaluate their arguments themselves.
func hasSecretIndex(expr hclsyntax.Expression, ctx *hcl.EvalContext) bool {
	w := &indexWalker{expr: expr, ctx: ctx}
	_ = hclsyntax.Walk(expr, w) //nolint:errcheck // the walker returns none
	return w.found
}

type indexWalker struct {
	expr    hclsyntax.Expression // as a whole
	ctx     *hcl.EvalContext
	outside int // how many calls around the node are left out
	found   bool
}

// leavesOut reports whether a node is a call whose arguments do not count.
func (w *indexWalker) leavesOut(n hclsyntax.Node) bool {
	call, ok := n.(*hclsyntax.FunctionCallExpr)
	return ok && slices.Contains([]string{"nonsensitive", "try", "can"}, call.Name)
}

// Enter looks at an index.
func (w *indexWalker) Enter(n hclsyntax.Node) hcl.Diagnostics {
	if w.leavesOut(n) {
		w.outside++
	}
	if index, ok := n.(*hclsyntax.IndexExpr); ok && w.outside == 0 && !w.found {
		w.found = usesSecret(index.Key, w.ctx, func() bool { return usesSecret(w.expr, w.ctx, never) })
	}
	return nil
}

// Exit leaves a call.
func (w *indexWalker) Exit(n hclsyntax.Node) hcl.Diagnostics {
	if w.leavesOut(n) {
		w.outside--
	}
	return nil
}

// quotedText finds the texts that a diagnostic quotes.
var quotedText = pattern.New(`"(?:[^"\\]|\\.)*"`)

// hideSecrets takes out of the diagnostics of an expression whatever may come from something sensitive.
func hideSecrets(diags hcl.Diagnostics, expr hclsyntax.Expression, ctx *hcl.EvalContext) {
	if !usesSecret(expr, ctx, never) {
		return
	}
	words := wordsOf(expr)
	for _, d := range diags {
		part := hcl.Expression(expr)
		if d.Expression != nil {
			part = d.Expression
		}
		if usesSecret(part, ctx, always) && mayShow(d, words) {
			d.Detail = "The reason is not shown: it may contain a sensitive value."
		}
		// The writer would show variables of a `for`, among them keys, which cannot be marked.
		d.Expression, d.EvalContext = nil, nil
	}
}

// mayShow reports whether the text of a diagnostic may contain another value than the words of its expression.
func mayShow(d *hcl.Diagnostic, words map[string]bool) bool {
	if strings.HasSuffix(d.Detail, hiddenReason+".") {
		return false
	}
	if d.Summary == "Invalid function argument" || d.Summary == "Error in function call" {
		return true
	}
	return slices.ContainsFunc(quotedText.FindAllString(d.Detail, -1), func(quoted string) bool {
		text, err := strconv.Unquote(quoted)
		return err != nil || !words[text]
	})
}

// wordsOf returns the names that stand in an expression, which everybody may read: those of references, functions and
// variables of a `for`.
func wordsOf(expr hclsyntax.Expression) map[string]bool {
	words := map[string]bool{}
	addSteps := func(t hcl.Traversal) {
		for _, step := range t {
			words[stepName(step)] = true
		}
	}
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // the visitor returns none
		switch n := n.(type) {
		case *hclsyntax.ScopeTraversalExpr:
			addSteps(n.Traversal)
		case *hclsyntax.RelativeTraversalExpr:
			addSteps(n.Traversal)
		case *hclsyntax.FunctionCallExpr:
			words[n.Name] = true
		case *hclsyntax.ForExpr:
			words[n.KeyVar], words[n.ValVar] = true, true
		}
		return nil
	})
	return words
}
