package spec

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// tryFunc and canFunc evaluate their arguments once. The functions of hcl's own library evaluate
// them twice, so that nested calls double with each level. What comes of a sensitive argument is sensitive: also the
// fact that it could not be evaluated.
var (
	tryFunc = function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "expressions", Type: customdecode.ExpressionClosureType},
		Type:     function.StaticReturnType(cty.DynamicPseudoType),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			secret := false
			for _, arg := range args {
				v, diags, of := evaluateClosure(arg)
				if !diags.HasErrors() && secret {
					return Sensitive(v), nil
				}
				if !diags.HasErrors() {
					return v, nil
				}
				secret = secret || of
			}
			return cty.NilVal, errors.New("none of the expressions can be evaluated")
		},
	})
	canFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "expression", Type: customdecode.ExpressionClosureType}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			_, diags, secret := evaluateClosure(args[0])
			if secret {
				return Sensitive(cty.BoolVal(!diags.HasErrors())), nil
			}
			return cty.BoolVal(!diags.HasErrors()), nil
		},
	})
)

// evaluateClosure evaluates an argument of try or can, and reports whether it refers to something sensitive.
func evaluateClosure(arg cty.Value) (v cty.Value, diags hcl.Diagnostics, secret bool) {
	closure := customdecode.ExpressionClosureFromVal(arg)
	expr, ok := closure.Expression.(hclsyntax.Expression)
	if !ok {
		panic(fmt.Sprintf("spec: an argument is a %T", closure.Expression))
	}
	v, diags = evaluate(expr, closure.EvalContext)
	return v, diags, usesSecret(expr, closure.EvalContext, never)
}

var (
	sensitiveFunc = function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowMarked: true, AllowNull: true, AllowUnknown: true, AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return Sensitive(args[0]), nil },
	})
	nonsensitiveFunc = function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowMarked: true, AllowNull: true, AllowUnknown: true, AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, _ := args[0].UnmarkDeep()
			return v, nil
		},
	})
)

// lengthFunc counts the characters of a text too.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		if ty == cty.String || ty == cty.DynamicPseudoType || ty.IsTupleType() || ty.IsObjectType() || ty.IsCollectionType() {
			return cty.Number, nil
		}
		return cty.NilType, errors.New("only a string, a list, a set, a map or an object has a length")
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		v := args[0]
		switch ty := v.Type(); {
		case ty == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number), nil
		case ty.IsTupleType():
			return cty.NumberIntVal(int64(len(ty.TupleElementTypes()))), nil
		case ty.IsObjectType():
			return cty.NumberIntVal(int64(len(ty.AttributeTypes()))), nil
		case ty == cty.String:
			return stdlib.Strlen(v)
		default:
			return v.Length(), nil
		}
	},
})

// replaceFunc replaces a text, or a regular expression that stands between slashes.
var replaceFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "text", Type: cty.String}, {Name: "from", Type: cty.String}, {Name: "to", Type: cty.String},
	},
	Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if from := args[1].AsString(); len(from) > 1 && from[0] == '/' && from[len(from)-1] == '/' {
			return stdlib.RegexReplace(args[0], cty.StringVal(from[1:len(from)-1]), args[2])
		}
		return stdlib.Replace(args[0], args[1], args[2])
	},
})

var (
	startsWithFunc  = textTest("prefix", strings.HasPrefix)
	endsWithFunc    = textTest("suffix", strings.HasSuffix)
	strContainsFunc = textTest("part", strings.Contains)
)

func textTest(second string, test func(text, other string) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}, {Name: second, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var (
	sha256Func = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			sum := sha256.Sum256([]byte(args[0].AsString()))
			return cty.StringVal(hex.EncodeToString(sum[:])), nil
		},
	})
	base64EncodeFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.StringVal(base64.StdEncoding.EncodeToString([]byte(args[0].AsString()))), nil
		},
	})
	base64DecodeFunc = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			decoded, err := base64.StdEncoding.DecodeString(args[0].AsString())
			if err != nil || !utf8.Valid(decoded) {
				return cty.NilVal, function.NewArgErrorf(0, "it is not the base64 encoding of UTF-8 text")
			}
			return cty.StringVal(string(decoded)), nil
		},
	})
)

var (
	allTrueFunc = boolsFunc(func(bools []bool) bool { return !slices.Contains(bools, false) })
	anyTrueFunc = boolsFunc(func(bools []bool) bool { return slices.Contains(bools, true) })
)

func boolsFunc(join func([]bool) bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var bools []bool
			for _, v := range args[0].AsValueSlice() {
				if !v.IsKnown() {
					return cty.UnknownVal(cty.Bool), nil
				}
				bools = append(bools, !v.IsNull() && v.True())
			}
			return cty.BoolVal(join(bools)), nil
		},
	})
}

var sumFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		total := cty.Zero
		for _, v := range args[0].AsValueSlice() {
			if !v.IsNull() {
				total = total.Add(v)
			}
		}
		return total, nil
	},
})

// oneFunc returns the only element of a collection, or null if it is empty.
var oneFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type:   function.StaticReturnType(cty.DynamicPseudoType),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		ty := args[0].Type()
		if !ty.IsListType() && !ty.IsSetType() && !ty.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "it is not a list or a set")
		}
		switch items := args[0].AsValueSlice(); len(items) {
		case 0:
			return cty.NullVal(cty.DynamicPseudoType), nil
		case 1:
			return items[0], nil
		default:
			return cty.NilVal, function.NewArgErrorf(0, "it has more than one element")
		}
	},
})

func asText(v cty.Value) (cty.Value, error) { return convert.Convert(v, cty.String) }

func sortedNamesOf(values map[string]cty.Value) []string {
	return slices.Sorted(maps.Keys(values))
}

// formatFunc, formatListFunc and indentFunc refuse to fill memory with spaces.
var (
	formatFunc     = bounded(stdlib.FormatFunc)
	formatListFunc = bounded(stdlib.FormatListFunc)
	indentFunc     = function.New(&function.Spec{
		Params: []function.Parameter{{Name: "spaces", Type: cty.Number}, {Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if n := args[0].AsBigFloat(); !n.IsInt() || n.Sign() < 0 || n.Cmp(big.NewFloat(1000)) > 0 {
				return cty.NilVal, function.NewArgErrorf(0, "it must be a whole number from 0 to 1000")
			}
			return stdlib.Indent(args[0], args[1])
		},
	})
)

func bounded(f function.Function) function.Function {
	return function.New(&function.Spec{
		Params:   f.Params(),
		VarParam: f.VarParam(),
		Type:     f.ReturnTypeForValues,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if wideVerb.MatchString(args[0].AsString()) {
				return cty.NilVal, function.NewArgErrorf(0, "a width or precision must be less than 10000")
			}
			return f.Call(args)
		},
	})
}

// indexFunc finds the place of a value in a list. The function of that name in
// cty's library does something else.
var indexFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
			return cty.NilVal, function.NewArgErrorf(0, "it is not a list")
		}
		for i, item := range args[0].AsValueSlice() {
			equal, err := stdlib.Equal(item, args[1])
			switch {
			case err != nil:
				return cty.NilVal, err
			case !equal.IsKnown():
				return cty.UnknownVal(cty.Number), nil
			case equal.True():
				return cty.NumberIntVal(int64(i)), nil
			}
		}
		return cty.NilVal, function.NewArgErrorf(1, "the list has no such element")
	},
})
