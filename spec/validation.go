package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// validate checks the rules of a variable.
func (l *loader) validate(e *evaluator, v *variable, value cty.Value) bool {
	ctx := &hcl.EvalContext{
		Functions: e.functions,
		Variables: map[string]cty.Value{"var": cty.ObjectVal(map[string]cty.Value{v.name: value})},
	}
	good := true
	for _, b := range v.block.Body.Blocks {
		condition, message := b.Body.Attributes["condition"], b.Body.Attributes["error_message"]
		if b.Type != validationShape.Name || condition == nil || message == nil {
			continue
		}
		if m := v.checkReferences(e.functions, condition.Expr, message.Expr); m != nil {
			l.diags, good = append(l.diags, m), false
			continue
		}
		good = l.checkRule(ctx, v, condition, message) && good
	}
	return good
}

// checkReferences refuses references to others, and to nothing, in a rule.
func (v *variable) checkReferences(functions map[string]function.Function, exprs ...hclsyntax.Expression) *hcl.Diagnostic {
	for _, expr := range exprs {
		for _, call := range unknownCalls(expr, functions) {
			return mistake(call.NameRange, "Unknown function", "There is no function `%s`.%s", call.Name,
				DidYouMean(call.Name, slices.Sorted(maps.Keys(functions))))
		}
		for _, t := range hclsyntax.Variables(expr) {
			if t.RootName() != "var" || len(t) < 2 || stepName(t[1]) != v.name {
				return mistake(t.SourceRange(), "Unexpected reference", "A validation of `var.%s` can refer only to `var.%s`.", v.name, v.name)
			}
		}
	}
	return nil
}

// checkRule evaluates one rule.
func (l *loader) checkRule(ctx *hcl.EvalContext, v *variable, condition, message *hclsyntax.Attribute) bool {
	held, diags := evaluate(condition.Expr, ctx)
	l.diags = append(l.diags, diags...)
	if diags.HasErrors() {
		return false
	}
	held, _ = held.UnmarkDeep()
	verdict, err := convert.Convert(held, cty.Bool)
	if err != nil || !verdict.IsKnown() || verdict.IsNull() {
		l.diags = append(l.diags, mistake(condition.Expr.Range(), "Invalid condition", "A condition must be true or false; this one is neither."))
		return false
	}
	if verdict.True() {
		return true
	}
	said, diags := evaluate(message.Expr, ctx)
	words := "Its value is not allowed."
	if said, err := convert.Convert(said, cty.String); !diags.HasErrors() && err == nil && said.IsKnown() && !said.IsMarked() && !said.IsNull() {
		words = strings.TrimSpace(said.AsString())
	}
	l.diags = append(l.diags, mistake(condition.Expr.Range(), "Invalid value for variable", "`var.%s`: %s", v.name, words))
	return false
}
