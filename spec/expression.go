package spec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
)

// indexedBy finds vm.web[EXPR] in an expression: EXPR by the range of vm.web.
func indexedBy(expr hclsyntax.Expression) map[hcl.Range]hclsyntax.Expression {
	found := map[hcl.Range]hclsyntax.Expression{}
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics { //nolint:errcheck // the visitor returns none
		if index, ok := n.(*hclsyntax.IndexExpr); ok {
			if of, ok := index.Collection.(*hclsyntax.ScopeTraversalExpr); ok {
				found[of.Traversal.SourceRange()] = index.Key
			}
		}
		return nil
	})
	return found
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
