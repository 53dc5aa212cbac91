package spec

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// resourceNode reads the header of a resource block: the parts that are needed before its
// attributes can be evaluated.
func (l *loader) resourceNode(e *evaluator, addr Address) *node {
	b := e.declared.resources[addr]
	block := &resourceBlock{Block: b, shape: resourceShapes[addr.Kind]}
	n := &node{name: nodeName{string(addr.Kind), addr.Name}, rng: b.DefRange(), resource: block}
	if a, ok := b.Body.Attributes["for_each"]; ok {
		block.forEach = a.Expr
		l.addReferences(e.declared, n, scope{owner: n.name}, a.Expr)
		n.chainForEach(e.declared, a.Expr)
		n.splitForEach(a.Expr)
	}
	l.addReferences(e.declared, n, scope{owner: n.name, each: block.forEach != nil}, expressions(b.Body, block.shape)...)
	l.provider(e, n)
	if a, ok := b.Body.Attributes["depends_on"]; ok {
		l.dependsOn(e.declared, n, a.Expr)
	}
	l.lifecycleRules(e, n)
	return n
}

// chainForEach lets each instance of `for_each = disk.cache` use the disk of its own key
// alone.
func (n *node) chainForEach(d *declarations, forEach hclsyntax.Expression) {
	if len(n.refs) != 1 || n.refs[0].rng != forEach.Range() || n.refs[0].key != "" {
		return
	}
	b, ok := d.resources[n.refs[0].target().block()]
	if ok && b.Body.Attributes["for_each"] != nil {
		n.refs[0].keyExpr = &hclsyntax.ScopeTraversalExpr{
			Traversal: hcl.Traversal{hcl.TraverseRoot{Name: "each"}, hcl.TraverseAttr{Name: "key"}}, SrcRange: forEach.Range(),
		}
	}
}

// splitForEach lets each instance of `for_each = { a = disk.x, b = disk.y }` use only the resources
// in the value of its own key.
func (n *node) splitForEach(forEach hclsyntax.Expression) {
	object, ok := forEach.(*hclsyntax.ObjectConsExpr)
	if !ok {
		return
	}
	for _, item := range object.Items {
		for i := range n.refs {
			if within := item.ValueExpr.Range(); within.Overlaps(n.refs[i].rng) {
				n.refs[i].item = item.KeyExpr
			}
		}
	}
}

// provider reads `provider = provider.libvirt.here`. An object inside of a VM has the VM's
// provider, which is known once the block is evaluated.
func (l *loader) provider(e *evaluator, n *node) {
	b := n.resource
	if _, has := b.shape.attr("provider"); !has {
		return
	}
	a, ok := b.Body.Attributes["provider"]
	if ok {
		l.providerReference(e.declared, n, a.Expr)
		return
	}
	if b.shape.In != nil { // it is inside of something else
		return
	}
	b.provider = e.declared.builtIn
	declared, ok := e.declared.providers[b.provider]
	switch {
	case ok && declared.Body.Attributes["for_each"] != nil:
		l.diags = append(l.diags, mistake(b.DefRange(), "Missing key",
			"`%s` names no provider, and `%s` has `for_each`: write `provider = %s[\"KEY\"]`.", b.name(), b.provider, b.provider))
		b.provider = ProviderRef{}
	case !ok && !l.in.hasType(b.provider.Type):
		l.diags = append(l.diags, mistake(b.DefRange(), "Missing provider type",
			"`%s` names no provider, and this build of vmctl has none of type %q.", b.name(), b.provider.Type))
	}
}

// providerReference reads provider.libvirt.here and provider.libvirt.host[KEY].
func (l *loader) providerReference(d *declarations, n *node, expr hclsyntax.Expression) {
	refs := providerRefs(d)
	of, key := expr, hclsyntax.Expression(nil)
	if index, ok := expr.(*hclsyntax.IndexExpr); ok {
		of, key = index.Collection, index.Key
	}
	t, diags := hcl.AbsTraversalForExpr(of)
	if !diags.HasErrors() && len(t) == 4 && key == nil {
		if index, ok := t[3].(hcl.TraverseIndex); ok {
			key = &hclsyntax.LiteralValueExpr{Val: index.Key, SrcRange: index.SrcRange}
			t = t[:3]
		}
	}
	if ref, ok := instanceByDot(d, t); ok {
		l.diags = append(l.diags, mistake(expr.Range(), "Invalid key", "The instances of `%s` are named by their keys: write `%s`.", ref.Block(), ref))
		return
	}
	if diags.HasErrors() || t.RootName() != "provider" || len(t) != 3 || stepName(t[1]) == "" || stepName(t[2]) == "" {
		l.diags = append(l.diags, mistake(expr.Range(), "Invalid provider",
			"Write the provider as a reference without quotes, for example `provider = %s`.", refs[0]))
		return
	}
	ref := ProviderRef{Type: stepName(t[1]), Name: stepName(t[2])}
	declared, ok := d.providers[ref]
	if !ok && ref != d.builtIn {
		l.diags = append(l.diags, mistake(expr.Range(), "Unknown provider", "`%s` is not declared.%s",
			ref, DidYouMean(ref.String(), refs)))
		return
	}
	forEach := ok && declared.Body.Attributes["for_each"] != nil
	switch {
	case forEach && key == nil:
		l.diags = append(l.diags, mistake(expr.Range(), "Missing key", "`%s` has `for_each`: write `%s[\"KEY\"]`, or `%s[each.key]`.", ref, ref, ref))
		return
	case !forEach && key != nil:
		l.diags = append(l.diags, mistake(expr.Range(), "Unexpected key", "`%s` has no `for_each`: write `%s` without a key.", ref, ref))
		return
	}
	n.resource.provider, n.resource.providerKey = ref, key
	if key != nil {
		l.addReferences(d, n, scope{owner: n.name, each: n.resource.forEach != nil, plain: "The provider of " + quoteName(n.name)}, key)
	}
}

// instanceByDot returns the provider that provider.libvirt.host.a probably means.
func instanceByDot(d *declarations, t hcl.Traversal) (ProviderRef, bool) {
	if len(t) != 4 || t.RootName() != "provider" {
		return ProviderRef{}, false
	}
	last, dotted := t[3].(hcl.TraverseAttr)
	ref := ProviderRef{Type: stepName(t[1]), Name: stepName(t[2])}
	b, declared := d.providers[ref]
	if !dotted || !declared || b.Body.Attributes["for_each"] == nil {
		return ProviderRef{}, false
	}
	ref.Key = last.Name
	return ref, true
}

// builtIn returns the provider of resources that name none. typ is its type; "": libvirt.
func builtIn(typ string) ProviderRef {
	return ProviderRef{Type: cmp.Or(typ, "libvirt"), Name: "default"}
}

// name returns the name of the block in references.
func (b *resourceBlock) name() nodeName { return nodeName{b.Type, b.Labels[0]} }

func providerRefs(d *declarations) []string {
	refs := []string{d.builtIn.String()}
	for ref := range d.providers { // without keys, which are not known yet
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

// resourceAddresses lists the blocks of resources.
func (d *declarations) resourceAddresses() []Address {
	return slices.SortedFunc(maps.Keys(d.resources), Address.Compare)
}

func sortedNames(blocks map[string]*hclsyntax.Block) []string {
	return slices.Sorted(maps.Keys(blocks))
}

// emptyContext returns the context of expressions that may refer to nothing.
func emptyContext() *hcl.EvalContext { return &hcl.EvalContext{Variables: map[string]cty.Value{}} }
