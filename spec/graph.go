package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// buildGraph makes a node of every local, resource and output, finds the names that they refer to,
// and puts them in order.
func (l *loader) buildGraph(e *evaluator) {
	d := e.declared
	for _, label := range d.declared("local") {
		a := d.locals[label]
		n := &node{name: nodeName{"local", label}, rng: a.NameRange, expr: a.Expr}
		e.nodes[n.name] = n
		l.addReferences(d, n, scope{owner: n.name}, a.Expr)
	}
	for _, addr := range d.resourceAddresses() {
		n := l.resourceNode(e, addr)
		e.nodes[n.name] = n
	}
	for _, label := range sortedNames(d.outputs) {
		n := l.outputNode(d, label)
		e.outputs = append(e.outputs, n)
		e.refer(n)
	}
	l.checkRules(e)
	l.sortNodes(e)
}

// addReferences finds the references of expressions of n.
func (l *loader) addReferences(d *declarations, n *node, in scope, exprs ...hclsyntax.Expression) {
	for _, expr := range exprs {
		refs, diags := d.references(expr, in)
		l.diags = append(l.diags, diags...)
		if diags.HasErrors() {
			if n.invalid == nil {
				n.invalid = map[hclsyntax.Expression]bool{}
			}
			n.invalid[expr] = true
		}
		n.refs = append(n.refs, refs...)
	}
	n.targets = targetsOf(n.refs)
}

// targetsOf lists the targets of references, each target once, in order of appearance.
func targetsOf(refs []reference) []target {
	var targets []target
	at := map[nodeName]int{}
	for _, ref := range refs {
		if ref.root == "each" {
			continue
		}
		i, seen := at[ref.target()]
		if !seen {
			i = len(targets)
			at[ref.target()] = i
			targets = append(targets, target{nodeName: ref.target(), keys: map[string]bool{}})
		}
		t := &targets[i]
		if ref.key == "" {
			t.keys = nil
		} else if t.keys != nil {
			t.keys[ref.key] = true
		}
		a, ok := AttrAt(Kind(ref.root), ref.attr)
		t.attrs = t.attrs || !ok || !a.Computed
	}
	return targets
}

// expressions lists the expressions of a body that its shape knows, those of
// nested blocks included.
func expressions(body *hclsyntax.Body, shape Block) []hclsyntax.Expression {
	var exprs []hclsyntax.Expression
	for _, a := range attributesOf(body) {
		known, ok := shape.attr(a.Name)
		nested, _ := shape.block(a.Name)
		if nested.Shorthand != "" || ok && !known.Meta && !known.Computed && !known.Derived && !known.Own && known.Form != Paths {
			exprs = append(exprs, a.Expr)
		}
	}
	for _, b := range body.Blocks {
		if nested, ok := shape.block(b.Type); ok {
			exprs = append(exprs, expressions(b.Body, nested)...)
		}
	}
	return exprs
}

// needs lists the nodes that n needs, by name.
func (e *evaluator) needs(n *node) []*node {
	var needed []*node
	for _, t := range n.targets {
		if t.root != "var" {
			needed = append(needed, e.nodes[t.nodeName])
		}
	}
	if n.resource != nil {
		for _, ref := range n.resource.dependsOn {
			needed = append(needed, e.nodes[ref.target()])
		}
		for _, r := range n.resource.rules {
			needed = append(needed, e.needs(r.node)...)
		}
	}
	slices.SortFunc(needed, func(a, b *node) int { return a.name.compare(b.name) })
	return slices.Compact(needed)
}

// refer marks the nodes whose values n needs.
func (e *evaluator) refer(n *node) {
	for _, t := range n.targets {
		if m := e.nodes[t.nodeName]; m != nil {
			m.referred = true
		}
	}
	if n.resource != nil {
		for _, r := range n.resource.rules {
			e.refer(r.node)
		}
	}
}

// sortNodes puts all nodes in order and reports cycles. Nodes of a cycle come last.
func (l *loader) sortNodes(e *evaluator) {
	waits := map[*node]int{}
	neededBy := map[*node][]*node{}
	var ready, all []*node
	for _, n := range e.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int { return a.name.compare(b.name) })
	for _, n := range all {
		needs := e.needs(n)
		waits[n] = len(needs)
		e.refer(n)
		for _, m := range needs {
			neededBy[m] = append(neededBy[m], n)
		}
		if len(needs) == 0 {
			ready = append(ready, n)
		}
	}
	for len(ready) > 0 {
		n := ready[0]
		ready = ready[1:]
		n.index = len(e.order)
		e.order = append(e.order, n)
		for _, m := range neededBy[n] {
			if waits[m]--; waits[m] == 0 {
				ready = append(ready, m)
			}
		}
	}
	for _, n := range all {
		if waits[n] > 0 {
			n.index, n.cyclic = len(e.order), true
			e.order = append(e.order, n)
		}
	}
	l.reportCycles(e)
}

// reportCycles reports nodes that need each other: one diagnostic for each cycle.
func (l *loader) reportCycles(e *evaluator) {
	seen := map[*node]bool{}
	for _, start := range e.order {
		if !start.cyclic || seen[start] {
			continue
		}
		var path []*node
		on := map[*node]int{}
		// Every cyclic node needs a cyclic one, so the walk ends where it has been before.
		n := start
		for !seen[n] {
			seen[n] = true
			on[n] = len(path)
			path = append(path, n)
			n = e.firstCyclic(n)
		}
		if from, ok := on[n]; ok {
			l.diags = append(l.diags, cycle(path[from:]))
		}
	}
}

func (e *evaluator) firstCyclic(n *node) *node {
	for _, m := range e.needs(n) {
		if m.cyclic {
			return m
		}
	}
	return n
}

// cycle returns the diagnostic of one cycle. It begins with the node that stands first in the
// files.
func cycle(nodes []*node) *hcl.Diagnostic {
	first := 0
	for i, n := range nodes {
		if compareRanges(&n.rng, &nodes[first].rng) < 0 {
			first = i
		}
	}
	nodes = append(slices.Clone(nodes[first:]), nodes[:first]...)
	var steps []string
	for i, n := range nodes {
		next := nodes[(i+1)%len(nodes)]
		steps = append(steps, fmt.Sprintf("`%s` (%s) needs `%s`", n.name, formatRange(n.rng), next.name))
	}
	const most = 20
	if rest := len(steps) - most; rest > 0 {
		steps = append(steps[:most], fmt.Sprintf("and %d more", rest))
	}
	return mistake(nodes[0].rng, "Reference cycle", "%s. Remove one of these references.", strings.Join(steps, ", "))
}

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
