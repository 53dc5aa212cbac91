package spec

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// functions returns all functions of the language. Functions that read files read them in one
// folder.
func functions(f *folder) map[string]function.Function {
	all := map[string]function.Function{"try": tryFunc, "can": canFunc}
	for name, f := range pureFunctions {
		all[name] = withoutSecretsInErrors(f)
	}
	all["file"] = withoutSecretsInErrors(fileFunc("the content of the file", f, f.text))
	all["filesha256"] = withoutSecretsInErrors(fileFunc("the digest of the file", f, f.sum))
	// A template must not use templates: it could go round in circles.
	all["templatefile"] = withoutSecretsInErrors(templateFunc(f, maps.Clone(all)))
	all["fileexists"] = withoutSecretsInErrors(existsFunc(f))
	return all
}

// fileFunc returns a function of one path.
func fileFunc(description string, f *folder, read func(path string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			content, err := read(args[0].AsString())
			if f.toleratesMissing(err) {
				return cty.UnknownVal(cty.String), nil
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(content), nil
		},
	})
}

func existsFunc(f *folder) function.Function {
	return function.New(&function.Spec{
		Description: "whether the folder has such a file",
		Params:      []function.Parameter{{Name: "path", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			exists, err := f.exists(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.BoolVal(exists), nil
		},
	})
}

// templateFunc returns the function that renders a file of the folder with the given names.
func templateFunc(f *folder, within map[string]function.Function) function.Function {
	return function.New(&function.Spec{
		Description: "the file as a template",
		Params: []function.Parameter{
			{Name: "path", Type: cty.String},
			{Name: "vars", Type: cty.DynamicPseudoType, AllowMarked: true, AllowUnknown: true},
		},
		Type: function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			path := args[0].AsString()
			content, err := f.text(path)
			vars, marks := args[1].Unmark()
			if f.toleratesMissing(err) {
				return cty.UnknownVal(cty.String).WithMarks(marks), nil
			}
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			if !vars.IsKnown() {
				return cty.UnknownVal(cty.String).WithMarks(marks), nil
			}
			if vars.IsNull() || !vars.Type().IsObjectType() && !vars.Type().IsMapType() {
				return cty.NilVal, function.NewArgErrorf(1, "the variables of the template must be a map like { name = \"value\" }")
			}
			value, err := render(path, content, &hcl.EvalContext{Variables: vars.AsValueMap(), Functions: within})
			if err != nil {
				return cty.NilVal, err
			}
			return value.WithMarks(marks), nil
		},
	})
}

func render(path, content string, ctx *hcl.EvalContext) (cty.Value, error) {
	filename := filepath.ToSlash(path)
	if m := checkTokens(templateTokens([]byte(content), filename)); m != nil {
		return cty.NilVal, templateError(hcl.Diagnostics{m})
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(content), filename, hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, templateError(diags)
	}
	for _, t := range hclsyntax.Variables(expr) {
		if _, ok := ctx.Variables[t.RootName()]; !ok {
			rng := t.SourceRange()
			hint := ""
			if best := nearest(t.RootName(), sortedNamesOf(ctx.Variables)); best != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", best)
			}
			return cty.NilVal, fmt.Errorf("%s uses `%s`, but the call does not pass that name%s", formatRange(rng), t.RootName(), hint)
		}
	}
	for _, call := range unknownCalls(expr, ctx.Functions) {
		return cty.NilVal, fmt.Errorf("%s calls `%s`, but templates have no such function", formatRange(call.NameRange), call.Name)
	}
	value, diags := evaluate(expr, ctx)
	if diags.HasErrors() {
		return cty.NilVal, templateError(diags)
	}
	text, err := asText(value)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the result of the template %q is not a string: %w", path, err)
	}
	return text, nil
}

// templateTokens scans a template; the parser complains of bad tokens.
func templateTokens(src []byte, filename string) hclsyntax.Tokens {
	tokens, _ := hclsyntax.LexTemplate(src, filename, hcl.InitialPos) //nolint:errcheck // see above
	return tokens
}

func templateError(diags hcl.Diagnostics) error {
	d := diags[0]
	where := ""
	if d.Subject != nil {
		where = formatRange(*d.Subject) + ": "
	}
	return fmt.Errorf("%s%s", where, strings.TrimSuffix(d.Detail, "."))
}

// unknownCalls finds calls of functions that do not exist. HCL would find them
// too, and suggest whichever name comes first in a map.
func unknownCalls(expr hclsyntax.Expression, functions map[string]function.Function) []*hclsyntax.FunctionCallExpr {
	var calls []*hclsyntax.FunctionCallExpr
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // the visitor returns none
		if call, ok := n.(*hclsyntax.FunctionCallExpr); ok {
			if _, exists := functions[call.Name]; !exists {
				calls = append(calls, call)
			}
		}
		return nil
	})
	return calls
}
