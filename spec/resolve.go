package spec

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Resolve evaluates one resource again. values holds, by address, the values of existing objects;
// only their computed attributes are used. A value that needs an attribute of an object without
// values stays unknown. A resource that is not in the spec is an error. Resolve may be called
// from several goroutines.
func (c *Config) Resolve(addr Address, values map[Address]cty.Value) (Resource, hcl.Diagnostics) {
	unknown := hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Unknown resource", Detail: "`" + addr.String() + "` is not in the spec.",
	}}
	e := c.evaluator
	r, ok := c.Resource(addr)
	switch {
	case ok && c.recorded[addr]:
		return r, nil
	case !ok || e == nil:
		return Resource{}, unknown
	}
	n := e.nodes[nodeName{string(addr.Kind), addr.Name}]
	w := e.newEvaluation(c.valuesUsedBy(addr, values))
	w.prepare(n)
	result := w.evaluate(n, addr.Key)
	switch diags := sortUnique(w.diags); {
	case diags.HasErrors():
		return Resource{}, diags
	case len(result.instances) == 0:
		return Resource{}, unknown
	}
	return result.instances[0].resource, nil
}

// valuesUsedBy returns the values of the resources that addr uses, directly or through others, so
// that one of a thousand instances need not examine all values.
func (c *Config) valuesUsedBy(addr Address, values map[Address]cty.Value) map[Address]cty.Value {
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

// prepare evaluates again the nodes that nodes need and that Load could not evaluate wholly.
func (w *evaluation) prepare(nodes ...*node) {
	seen := map[*node]bool{}
	for n := range w.results { // it was evaluated anew before
		seen[n] = true
	}
	var again []*node
	open := slices.Clone(nodes)
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		for _, t := range n.targets {
			m := w.nodes[t.nodeName]
			// Computed attributes come from values, whatever the resource wants.
			if t.root == "var" || seen[m] || !t.attrs || !w.base.result(m).pending {
				continue
			}
			seen[m] = true
			again = append(again, m)
			open = append(open, m)
		}
	}
	slices.SortFunc(again, func(a, b *node) int { return cmp.Compare(a.index, b.index) })
	for _, n := range again {
		w.evaluate(n, "")
	}
}
