package spec

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Outputs evaluates the outputs, sorted by name. values holds, by address, the values of existing
// objects; only their computed attributes are used. An output that needs an attribute of an
// object without values is unknown. An output that cannot be evaluated is unknown too, and its
// Mistakes say why; the others are evaluated all the same. Values bear no marks: Sensitive says
// that a value must not be shown.
func (c *Config) Outputs(values map[Address]cty.Value) ([]Output, hcl.Diagnostics) {
	e := c.evaluator
	if e == nil {
		return nil, nil
	}
	var outputs []Output
	var all hcl.Diagnostics
	for _, n := range e.outputs {
		w := e.newEvaluation(values)
		w.prepare(n)
		value, _ := w.evaluate(n, "").value.UnmarkDeep()
		o := Output{Name: n.name.name, Value: value, Sensitive: n.sensitive}
		if diags := sortUnique(w.diags); diags.HasErrors() {
			o.Value, o.Mistakes = cty.DynamicVal, diags
		}
		outputs = append(outputs, o)
		all = append(all, w.diags...)
	}
	return outputs, sortUnique(all)
}

// outputNode reads an output block.
func (l *loader) outputNode(d *declarations, label string) *node {
	b := d.outputs[label]
	n := &node{name: nodeName{"output", label}, rng: b.DefRange()}
	dec := &decoder{ctx: emptyContext(), owner: n.name.String(), invalid: map[hclsyntax.Expression]bool{}}
	l.refuseReferences(dec.invalid, b.Body, outputShape)
	decoded := dec.block(b.Body, outputShape, location{rng: b.DefRange()})
	dec.required(b, outputShape, "")
	l.diags = append(l.diags, dec.diags...)
	n.sensitive = !decoded.GetAttr("sensitive").IsKnown() || decoded.GetAttr("sensitive").True()
	n.expr = &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: b.DefRange()}
	if a, ok := b.Body.Attributes["value"]; ok {
		n.expr = a.Expr
		l.addReferences(d, n, scope{owner: n.name}, a.Expr)
	}
	return n
}

// checkOutput refuses an output that would show something sensitive.
func (l *loader) checkOutput(w *evaluation, n *node) {
	if value := w.result(n).value; value.ContainsMarked() && !n.sensitive {
		l.diags = append(l.diags, mistake(n.expr.Range(), "Sensitive output",
			"`%s` contains a sensitive value. Set `sensitive = true`, or leave that value out.", n.name))
	}
}
