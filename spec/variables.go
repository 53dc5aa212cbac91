package spec

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"vmctl/internal/procenv"
)

// EnvironPrefix begins the name of an environment variable that sets a variable.
const EnvironPrefix = procenv.VariablePrefix

// variable is one variable block.
type variable struct {
	name         string
	block        *hclsyntax.Block
	typ          cty.Type
	defaults     *typeexpr.Defaults // of optional attributes
	defaultValue cty.Value          // cty.NilVal: none
	sensitive    bool
	nullable     bool
}

// inputValue is a value that came from outside of the spec.
type inputValue struct {
	source string               // for people: "--var memory"
	text   string               // from the command line and the environment
	expr   hclsyntax.Expression // from a file
	rng    hcl.Range            // of expr
}

// evaluateVariables evaluates the variables.
func (l *loader) evaluateVariables(e *evaluator) {
	e.variables, e.failed = map[string]cty.Value{}, map[string]bool{}
	values, saved := l.inputValues(e.declared), l.savedValues(e.declared)
	for _, label := range sortedNames(e.declared.variables) {
		v, ok := l.variable(e.declared.variables[label])
		if ok {
			var value cty.Value
			if g, kept := saved[label]; kept {
				l.checkSaved(v, g, values[label])
				values[label] = g
			}
			if value, ok = l.valueOf(v, values); ok {
				e.variables[label] = value
				ok = l.validate(e, v, value)
			}
		}
		e.failed[label] = !ok
	}
}

// inputValues collects values from environment, files and command line, the later winning.
func (l *loader) inputValues(d *declarations) map[string]inputValue {
	values := map[string]inputValue{}
	for _, entry := range l.in.Environ {
		if assignment, ok := strings.CutPrefix(entry, EnvironPrefix); ok {
			// A variable of the environment that the spec does not have may be meant for another
			// spec.
			if label, text, ok := strings.Cut(assignment, "="); ok && d.variables[label] != nil {
				values[label] = inputValue{source: EnvironPrefix + label, text: text}
			}
		}
	}
	for _, path := range l.in.VarFiles {
		l.varFile(d, path, values)
	}
	for _, assignment := range l.in.Vars {
		label, text, ok := strings.Cut(assignment, "=")
		label = strings.TrimSpace(label)
		switch {
		case !ok:
			l.fail("Invalid --var", "`--var %s` sets nothing: write `--var NAME=VALUE`.", shorten(label))
		case d.variables[label] == nil:
			l.fail("Unknown variable", "`--var %s=…` sets a variable that is not declared.%s", label, DidYouMean(label, d.declared("var")))
		default:
			values[label] = inputValue{source: "--var " + label, text: text}
		}
	}
	return values
}

// varFile reads a file of `name = value` lines. No diagnostic shows a line of it: values may be secret.
func (l *loader) varFile(d *declarations, path string, values map[string]inputValue) {
	src, err := readText(path)
	if err != nil {
		l.fail("Unreadable variables", "`--var-file %s` could not be read: %s.", path, err)
		return
	}
	file, diags := parseSource(src, path)
	for _, d := range diags {
		d.Detail = "Each line reads like `name = \"value\"`. The line is not shown: it may have a secret in it."
	}
	l.diags = append(l.diags, diags...)
	body, ok := file.Body.(*hclsyntax.Body)
	if diags.HasErrors() || !ok {
		return
	}
	for _, b := range body.Blocks {
		l.diags = append(l.diags, mistake(b.TypeRange, "Unexpected block", "A variables file holds only lines like `name = value`."))
	}
	for _, a := range attributesOf(body) {
		if d.variables[a.Name] == nil {
			l.diags = append(l.diags, mistake(a.NameRange, "Unknown variable", "`var.%s` is not declared.%s",
				a.Name, DidYouMean(a.Name, d.declared("var"))))
			continue
		}
		values[a.Name] = inputValue{source: filepath.Base(path), expr: a.Expr, rng: a.Expr.Range()}
	}
}

// variable reads a variable block.
func (l *loader) variable(b *hclsyntax.Block) (*variable, bool) {
	v := &variable{name: b.Labels[0], block: b, typ: cty.DynamicPseudoType}
	dec := &decoder{ctx: emptyContext(), owner: "var." + v.name, invalid: map[hclsyntax.Expression]bool{}}
	before := len(l.diags)
	l.refuseReferences(dec.invalid, &hclsyntax.Body{Attributes: b.Body.Attributes}, variableShape)
	plain := variableShape
	plain.Blocks = nil
	decoded := dec.block(&hclsyntax.Body{Attributes: b.Body.Attributes}, plain, location{rng: b.DefRange()})
	for _, nested := range b.Body.Blocks {
		if nested.Type != validationShape.Name {
			dec.unknownName(bodyItem{nested.Type, nested.TypeRange, "block"}, variableShape, "")
			continue
		}
		dec.block(nested.Body, validationShape, location{rng: nested.DefRange(), path: validationShape.Name})
		dec.required(nested, validationShape, validationShape.Name)
	}
	l.diags = append(l.diags, dec.diags...)
	v.sensitive = !decoded.GetAttr("sensitive").IsKnown() || decoded.GetAttr("sensitive").True()
	v.nullable = !decoded.GetAttr("nullable").IsKnown() || decoded.GetAttr("nullable").True()
	if a, ok := b.Body.Attributes["type"]; ok {
		typ, defaults, diags := typeexpr.TypeConstraintWithDefaults(a.Expr)
		if keyword := hcl.ExprAsKeyword(a.Expr); diags.HasErrors() && keyword != "" {
			diags = hcl.Diagnostics{mistake(a.Expr.Range(), "Unknown type", "There is no type `%s`.%s", keyword, DidYouMean(keyword, typeNames))}
		}
		l.diags = append(l.diags, diags...)
		if !diags.HasErrors() {
			v.typ, v.defaults = typ, defaults
		}
	}
	if a, ok := b.Body.Attributes["default"]; ok && !l.diags[before:].HasErrors() {
		l.readDefault(v, a)
	}
	return v, !l.diags[before:].HasErrors()
}

func (l *loader) readDefault(v *variable, a *hclsyntax.Attribute) {
	if vars := hclsyntax.Variables(a.Expr); len(vars) > 0 {
		l.diags = append(l.diags, mistake(vars[0].SourceRange(), "Unexpected reference",
			"The default of a variable is a literal value. Put a value that refers to others into `locals`."))
		return
	}
	value, diags := evaluate(a.Expr, nil)
	l.diags = append(l.diags, diags...)
	if diags.HasErrors() {
		return
	}
	value, err := v.convert(value)
	if err != nil {
		l.diags = append(l.diags, mistake(a.Expr.Range(), "Invalid default", "The default of `var.%s` does not fit its type: %s.", v.name, conversionText(err)))
		return
	}
	v.defaultValue = value
}

// convert gives a value the variable's type. Its error never shows the value.
func (v *variable) convert(value cty.Value) (cty.Value, error) {
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	return convert.Convert(value, v.typ)
}

// valueOf returns the value of v, marked if it is sensitive.
func (l *loader) valueOf(v *variable, values map[string]inputValue) (cty.Value, bool) {
	g, ok := values[v.name]
	value := v.defaultValue
	if ok {
		if value, ok = l.read(v, g); !ok {
			return cty.NilVal, false
		}
		if value.IsNull() && !v.nullable {
			value = v.defaultValue
		}
	}
	switch {
	case value == cty.NilVal && v.sensitive:
		l.diags = append(l.diags, mistake(v.block.DefRange(), "Missing variable",
			"`var.%s` has neither a default nor a value. It is sensitive: set it as `%s%s` in the environment, or in a `--var-file`.", v.name, EnvironPrefix, v.name))
		return cty.NilVal, false
	case value == cty.NilVal:
		l.diags = append(l.diags, mistake(v.block.DefRange(), "Missing variable",
			"`var.%s` has neither a default nor a value. Set one with `--var %s=…`, in a `--var-file`, or as `%s%s` in the environment.",
			v.name, v.name, EnvironPrefix, v.name))
		return cty.NilVal, false
	case value.IsNull() && !v.nullable:
		l.diags = append(l.diags, mistake(v.block.DefRange(), "Missing variable", "`var.%s` must not be null.", v.name))
		return cty.NilVal, false
	}
	if v.sensitive {
		value = Sensitive(value)
		l.warnShown(v, g)
	}
	return value, true
}

// warnShown warns about a sensitive value on the command line, where every user of the machine can read it.
func (l *loader) warnShown(v *variable, g inputValue) {
	if !strings.HasPrefix(g.source, "--var ") {
		return
	}
	l.diags = append(l.diags, &hcl.Diagnostic{
		Severity: hcl.DiagWarning, Summary: "Sensitive value on the command line",
		Detail: "`" + g.source + "=…` shows `var." + v.name + "`, which is sensitive, to everybody who lists the processes of this machine. Give it as `" +
			EnvironPrefix + v.name + "` in the environment, or in a `--var-file`.",
	})
}

// read evaluates a value from outside. For a sensitive variable it shows neither value nor
// source.
func (l *loader) read(v *variable, g inputValue) (cty.Value, bool) {
	if !utf8.ValidString(g.text) { // cty would make different values equal
		l.fail("Invalid value", "The value of `var.%s`, from `%s`, is not UTF-8 text. Encode it, for example with `base64`.", v.name, g.source)
		return cty.NilVal, false
	}
	value, diags := g.evaluate(v)
	var err error
	if !diags.HasErrors() {
		value, err = v.convert(value)
	}
	switch {
	case !diags.HasErrors() && err == nil:
		return value, true
	case v.sensitive && g.expr != nil:
		l.fail("Invalid value", "The value of `var.%s` at %s does not fit its type. It is sensitive and not shown.", v.name, formatRange(g.rng))
	case v.sensitive:
		l.fail("Invalid value", "The value of `var.%s`, from `%s`, does not fit its type. It is sensitive and not shown.", v.name, g.source)
	case g.expr != nil && err != nil:
		l.diags = append(l.diags, mistake(g.rng, "Invalid value", "The value of `var.%s` does not fit its type: %s.", v.name, conversionText(err)))
	case g.expr != nil:
		l.diags = append(l.diags, diags...)
	case err != nil:
		l.fail("Invalid value", "The value of `var.%s`, from `%s`, does not fit its type: %s.", v.name, g.source, conversionText(err))
	default:
		l.fail("Invalid value", "The value of `var.%s`, from `%s`, cannot be read: %s.", v.name, g.source, diags[0].Detail)
	}
	return cty.NilVal, false
}

// evaluate turns a given text into a value. It takes the text as it is if the variable is a
// string, number or bool, or has no type; else it is an expression.
func (g inputValue) evaluate(v *variable) (cty.Value, hcl.Diagnostics) {
	if g.expr != nil {
		if vars := hclsyntax.Variables(g.expr); len(vars) > 0 {
			return cty.NilVal, hcl.Diagnostics{mistake(vars[0].SourceRange(), "Unexpected reference",
				"A variables file holds literal values. Put text in quotes.")}
		}
		return evaluate(g.expr, nil)
	}
	if v.typ.IsPrimitiveType() || v.typ == cty.DynamicPseudoType {
		return cty.StringVal(g.text), nil
	}
	file, diags := parseSource([]byte("value = "+g.text+"\n"), g.source)
	body, ok := file.Body.(*hclsyntax.Body)
	if diags.HasErrors() || !ok || body.Attributes["value"] == nil || len(body.Attributes)+len(body.Blocks) != 1 {
		return cty.NilVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid value",
			Detail: "it is not an expression; write for example " + exampleOf(v.typ),
		}}
	}
	expr := body.Attributes["value"].Expr
	if vars := hclsyntax.Variables(expr); len(vars) > 0 {
		return cty.NilVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Invalid value",
			Detail: "it contains a reference; put text in quotes, for example " + exampleOf(v.typ),
		}}
	}
	return evaluate(expr, nil)
}

func exampleOf(ty cty.Type) string {
	if ty.IsMapType() || ty.IsObjectType() {
		return `{ a = "b" }`
	}
	return `["a", "b"]`
}

// Variables lists the names of the variables that the files declare, sorted, also
// where there are errors.
func (c *Config) Variables() []string {
	if c.evaluator == nil || c.evaluator.declared == nil {
		return nil
	}
	return sortedNames(c.evaluator.declared.variables)
}
