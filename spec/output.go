package spec

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Outputs evaluates the outputs, sorted by name. values holds, by address, the
// values of what exists, of which the computed attributes are used. What needs
// an attribute of something that has no values is unknown. Values bear no marks:
// Sensitive says what must not be shown.
func (c *Config) Outputs(values map[Address]cty.Value) ([]Output, hcl.Diagnostics) {
	e := c.evaluator
	if e == nil {
		return nil, nil
	}
	w := e.newWorld(values)
	w.prepare(e.outputs...)
	var outputs []Output
	for _, n := range e.outputs {
		value, _ := w.evaluate(n, "").value.UnmarkDeep()
		outputs = append(outputs, Output{Name: n.name.name, Value: value, Sensitive: n.sensitive})
	}
	return outputs, tidy(w.diags)
}

// outputNode reads an output block.
func (l *loader) outputNode(d *declarations, label string) *node {
	b := d.outputs[label]
	n := &node{name: name{"output", label}, rng: b.DefRange()}
	dec := &decoder{ctx: emptyContext(), owner: n.name.String(), bad: map[hclsyntax.Expression]bool{}}
	l.refuseReferences(dec.bad, b.Body, outputShape)
	decoded := dec.block(b.Body, outputShape, place{rng: b.DefRange()})
	dec.required(b, outputShape, "")
	l.diags = append(l.diags, dec.diags...)
	n.sensitive = !decoded.GetAttr("sensitive").IsKnown() || decoded.GetAttr("sensitive").True()
	n.expr = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: b.DefRange()}
	if a, ok := b.Body.Attributes["value"]; ok {
		n.expr = a.Expr
		l.refer(d, n, scope{owner: n.name}, a.Expr)
	}
	return n
}

// checkOutput refuses an output that would show something sensitive.
func (l *loader) checkOutput(w *world, n *node) {
	if value := w.result(n).value; value.ContainsMarked() && !n.sensitive {
		l.diags = append(l.diags, mistake(n.expr.Range(), "Sensitive output",
			"`%s` would show something sensitive. Write `sensitive = true` into it, or leave that part out.", n.name))
	}
}

// Resolve evaluates one resource again. values holds, by address, the values of
// what exists, of which the computed attributes are used; what needs an
// attribute of something that has no values stays unknown. A resource that is
// not in the spec is an error. Resolve may be called from several goroutines.
func (c *Config) Resolve(addr Address, values map[Address]cty.Value) (Resource, hcl.Diagnostics) {
	unknown := hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Unknown resource", Detail: "`" + addr.String() + "` is not in the spec.",
	}}
	e := c.evaluator
	if _, ok := c.Resource(addr); !ok || e == nil {
		return Resource{}, unknown
	}
	n := e.nodes[name{string(addr.Kind), addr.Name}]
	w := e.newWorld(c.usedBy(addr, values))
	w.prepare(n)
	r := w.evaluate(n, addr.Key)
	switch diags := tidy(w.diags); {
	case diags.HasErrors():
		return Resource{}, diags
	case len(r.instances) == 0:
		return Resource{}, unknown
	}
	return r.instances[0].resource, nil
}

// usedBy narrows values down to those of resources that addr uses, directly or
// through others: one of a thousand instances must not look at them all.
func (c *Config) usedBy(addr Address, values map[Address]cty.Value) map[Address]cty.Value {
	used := map[Address]cty.Value{}
	seen := map[Address]bool{addr: true}
	open := []Address{addr}
	for len(open) > 0 {
		r, _ := c.Resource(open[len(open)-1])
		open = open[:len(open)-1]
		for _, a := range r.Uses {
			if v, ok := values[a]; ok {
				used[a] = v
			}
			if !seen[a] {
				seen[a] = true
				open = append(open, a)
			}
		}
	}
	return used
}

// prepare evaluates again what nodes need and Load could not evaluate wholly.
func (w *world) prepare(nodes ...*node) {
	seen := map[*node]bool{}
	var again []*node
	open := slices.Clone(nodes)
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, t := range n.targets {
			m := w.nodes[t.name]
			// Computed attributes come from values, whatever the resource wants.
			if t.root == "var" || seen[m] || !t.attrs || !w.base.result(m).pending {
				continue
			}
			seen[m] = true
			again = append(again, m)
			open = append(open, m)
		}
	}
	slices.SortFunc(again, func(a, b *node) int { return cmp.Compare(a.place, b.place) })
	for _, n := range again {
		w.evaluate(n, "")
	}
}
