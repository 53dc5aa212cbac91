package spec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// mark is the type of marks on values.
type mark string

// sensitive marks a value that must never be shown or stored.
const sensitive mark = "sensitive"

// beside marks a public value that is withheld because a sensitive one stands in the same attribute. Its text is no secret.
const beside mark = "beside"

// Sensitive marks a value and all of its parts: a `for` takes the mark of a list off before it
// shows the elements to its body.
func Sensitive(v cty.Value) cty.Value { return markedDeep(v, sensitive) }

func markedDeep(v cty.Value, m mark) cty.Value {
	v, err := cty.Transform(v, func(_ cty.Path, part cty.Value) (cty.Value, error) { return part.Mark(m), nil })
	if err != nil {
		panic("spec: marking failed: " + err.Error())
	}
	return v
}

// withheldWhole marks all of an attribute's value: as sensitive what was so when it was given, and the rest as beside it.
func withheldWhole(v, given cty.Value) cty.Value {
	if given.IsMarked() || !v.Type().IsMapType() || !given.Type().IsMapType() && !given.Type().IsObjectType() {
		return Sensitive(v)
	}
	if v.LengthInt() == 0 { // its elements were null
		return v.Mark(beside)
	}
	elements, was := v.AsValueMap(), given.AsValueMap()
	for key, element := range elements {
		m := beside
		if was[key].ContainsMarked() {
			m = sensitive
		}
		elements[key] = markedDeep(element, m)
	}
	return cty.MapVal(elements).Mark(beside)
}

// markSensitiveParts marks everything inside of the marked parts of a value: functions mark their
// results as a whole only.
func markSensitiveParts(v cty.Value) cty.Value {
	switch {
	case v.IsMarked():
		return Sensitive(v)
	case v.Type().IsSetType() || !v.ContainsMarked(): // the marks of a set's elements are those of the set
		return v
	}
	parts := map[string]cty.Value{}
	var items []cty.Value
	for it := v.ElementIterator(); it.Next(); {
		key, part := it.Element()
		items = append(items, markSensitiveParts(part))
		if key.Type() == cty.String {
			parts[key.AsString()] = items[len(items)-1]
		}
	}
	switch ty := v.Type(); {
	case ty.IsObjectType():
		return cty.ObjectVal(parts)
	case ty.IsMapType():
		return cty.MapVal(parts)
	case ty.IsTupleType():
		return cty.TupleVal(items)
	case ty.IsListType():
		return cty.ListVal(items)
	default:
		panic("spec: marks inside a " + ty.FriendlyName())
	}
}

// evaluate evaluates an expression. The value is sensitive if it comes from something sensitive, and the diagnostics show
// nothing of that.
func evaluate(expr hclsyntax.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := expr.Value(ctx)
	if diags.HasErrors() {
		hideSecrets(diags, expr, ctx)
		return v, diags
	}
	return withLostMarks(v, expr, ctx), diags
}

// collectSecrets finds the sensitive texts in a value; hidden says that v is part of something sensitive.
func collectSecrets(v cty.Value, secrets map[string]bool, hidden bool) {
	hidden = hidden || v.HasMark(sensitive)
	v, _ = v.Unmark()
	switch {
	case !v.IsKnown() || v.IsNull():
	case !hidden && v.Type().IsSetType(): // the marks of its elements are those of the set
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			key, element := it.Element()
			if hidden && key.Type() == cty.String {
				secrets[key.AsString()] = true
			}
			collectSecrets(element, secrets, hidden)
		}
	case hidden && v.Type() == cty.String:
		secrets[v.AsString()] = true
	}
}

// hiddenReason stands in the error of a function in place of the reason.
const hiddenReason = "the reason is not shown, because it is sensitive"

// withoutSecretsInErrors returns f with errors that show nothing of sensitive arguments.
func withoutSecretsInErrors(f function.Function) function.Function {
	open := func(p function.Parameter) function.Parameter {
		p.AllowDynamicType, p.AllowMarked, p.AllowNull, p.AllowUnknown = true, true, true, true
		return p
	}
	s := &function.Spec{
		Description: f.Description(),
		Type:        function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f.Call(args)
			if err == nil {
				return markSensitiveParts(v), nil
			}
			for i, arg := range args {
				if arg.ContainsMarked() {
					return cty.NilVal, function.NewArgErrorf(i, hiddenReason)
				}
			}
			return cty.NilVal, err
		},
	}
	for _, p := range f.Params() {
		s.Params = append(s.Params, open(p))
	}
	if p := f.VarParam(); p != nil {
		v := open(*p)
		s.VarParam = &v
	}
	return function.New(s)
}
