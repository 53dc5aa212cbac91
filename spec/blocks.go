package spec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// resourceNode reads the header of a resource block: what is needed before its
// attributes can be evaluated.
func (l *loader) resourceNode(e *evaluator, addr Address) *node {
	b := e.declared.resources[addr]
	block := &resourceBlock{Block: b, shape: resourceShapes[addr.Kind]}
	n := &node{name: name{string(addr.Kind), addr.Name}, rng: b.DefRange(), resource: block}
	if a, ok := b.Body.Attributes["for_each"]; ok {
		block.forEach = a.Expr
		l.refer(e.declared, n, scope{owner: n.name}, a.Expr)
	}
	l.refer(e.declared, n, scope{owner: n.name, each: block.forEach != nil}, expressions(b.Body, block.shape)...)
	l.provider(e, block)
	if a, ok := b.Body.Attributes["depends_on"]; ok {
		l.dependsOn(e.declared, n, a.Expr)
	}
	return n
}

// provider reads `provider = provider.libvirt.here`.
func (l *loader) provider(e *evaluator, b *resourceBlock) {
	a, ok := b.Body.Attributes["provider"]
	if !ok {
		b.provider = builtIn()
		if _, declared := e.declared.providers[b.provider]; !declared && !l.hasType(b.provider.Type) {
			l.diags = append(l.diags, mistake(b.DefRange(), "Missing provider type",
				"`%s` names no provider, and this build of vmctl has none of type %q.", b.name(), b.provider.Type))
		}
	} else if !l.providerReference(e.declared, a.Expr, b) {
		return
	}
	if supports := l.in.Supports; supports != nil && l.hasType(b.provider.Type) {
		typ, kind := b.provider.Type, Kind(b.Type)
		b.supports = func(path string) bool { return supports(typ, kind, path) }
	}
	if check := l.in.Check; check != nil && l.hasType(b.provider.Type) {
		typ, kind := b.provider.Type, Kind(b.Type)
		b.check = func(want cty.Value) []Flaw { return check(typ, kind, want) }
	}
}

func (l *loader) providerReference(d *declarations, expr hclsyntax.Expression, b *resourceBlock) bool {
	t, diags := hcl.AbsTraversalForExpr(expr)
	refs := providerRefs(d)
	if diags.HasErrors() || t.RootName() != "provider" || len(t) != 3 || stepName(t[1]) == "" || stepName(t[2]) == "" {
		l.diags = append(l.diags, mistake(expr.Range(), "Invalid provider",
			"Write the provider as a reference without quotes, for example `provider = %s`.", refs[0]))
		return false
	}
	b.provider = ProviderRef{Type: stepName(t[1]), Name: stepName(t[2])}
	if _, ok := d.providers[b.provider]; ok || b.provider == builtIn() {
		return true
	}
	l.diags = append(l.diags, mistake(expr.Range(), "Unknown provider", "`%s` is not declared.%s",
		b.provider, didYouMean(b.provider.String(), refs)))
	return false
}

// builtIn is the provider of resources that name none.
func builtIn() ProviderRef { return ProviderRef{Type: "libvirt", Name: "default"} }

// name is what references call the block.
func (b *resourceBlock) name() name { return name{b.Type, b.Labels[0]} }

func providerRefs(d *declarations) []string {
	refs := []string{builtIn().String()}
	for ref := range d.providers {
		refs = append(refs, ref.String())
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// dependsOn reads a list of references to resources.
func (l *loader) dependsOn(d *declarations, n *node, expr hclsyntax.Expression) {
	items, diags := hcl.ExprList(expr)
	if diags.HasErrors() {
		l.diags = append(l.diags, mistake(expr.Range(), "Invalid depends_on", "Write a list of references, for example `depends_on = [vm.db]`."))
		return
	}
	for _, item := range items {
		t, diags := hcl.AbsTraversalForExpr(item)
		if diags.HasErrors() {
			l.diags = append(l.diags, mistake(item.Range(), "Invalid depends_on", "Write references without quotes, for example `depends_on = [vm.db]`."))
			continue
		}
		ref, m := d.reference(t, scope{owner: n.name})
		if m == nil && (ref.root == "var" || ref.root == "local" || ref.attr != "") {
			m = mistake(item.Range(), "Invalid depends_on", "`depends_on` lists whole resources, for example `[vm.db]`; a reference to an attribute needs no `depends_on`.")
		}
		if m != nil {
			l.diags = append(l.diags, m)
			continue
		}
		n.resource.dependsOn = append(n.resource.dependsOn, ref)
	}
}

// evaluateAll evaluates every node in order, and the providers, which it returns
// by name: those declared and the built-in one where a resource uses it.
func (l *loader) evaluateAll(e *evaluator) []Provider {
	base := e.newWorld(nil)
	e.base = base
	for _, n := range e.order {
		base.evaluate(n, "")
	}
	for _, n := range e.outputs {
		base.evaluate(n, "")
		l.checkOutput(base, n)
	}
	l.diags = append(l.diags, base.diags...)
	return l.providers(e)
}

// checkNames reports resources that would have the same name in one system.
func (l *loader) checkNames(c *Config) {
	type claim struct{ system, name string }
	taken := map[claim]Address{}
	for _, r := range c.Resources {
		chosen := r.Want.GetAttr("name")
		if !chosen.IsKnown() || chosen.IsNull() {
			continue
		}
		key := claim{c.evaluator.system(r.Provider), chosen.AsString()}
		other, ok := taken[key]
		if !ok {
			taken[key] = r.Address
			continue
		}
		l.diags = append(l.diags, mistake(r.Range, "Name taken twice",
			"`%s` and `%s` would both be named %q. Give each its own `name`, with `each.key` in it where there is `for_each`, or leave it out.",
			other, r.Address, chosen.AsString()))
	}
}

// system identifies what a provider block reaches: two blocks with the same
// settings reach the same.
func (e *evaluator) system(ref ProviderRef) string {
	p, ok := e.providers[ref]
	if !ok {
		return ref.String()
	}
	return ref.Type + " " + p.Attrs.GoString()
}

// resourceAddresses lists the blocks of resources.
func (d *declarations) resourceAddresses() []Address {
	return slices.SortedFunc(maps.Keys(d.resources), Address.Compare)
}

func sortedNames(blocks map[string]*hclsyntax.Block) []string {
	return slices.Sorted(maps.Keys(blocks))
}

// emptyContext evaluates what may refer to nothing.
func emptyContext() *hcl.EvalContext { return &hcl.EvalContext{Variables: map[string]cty.Value{}} }
