package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// providers evaluates the provider blocks, and returns the providers by name: the declared ones,
// and the built-in one if a resource uses it.
func (l *loader) providers(e *evaluator) []Provider {
	e.providers = map[ProviderRef]Provider{}
	for _, ref := range slices.SortedFunc(maps.Keys(e.declared.providers), ProviderRef.compare) {
		for _, p := range l.providerBlock(e, ref) {
			e.providers[p.Ref] = p
		}
	}
	for _, n := range e.order {
		if n.resource == nil {
			continue
		}
		ref := n.resource.provider
		if _, declared := e.declared.providers[ref]; !declared && ref == e.declared.builtIn {
			attrs := providerShapes[ref.Type].leftOut(wanted)
			e.providers[ref] = Provider{Ref: ref, Attrs: attrs, BuiltIn: true}
		}
	}
	e.systems = map[ProviderRef]string{}
	var list []Provider
	for _, ref := range slices.SortedFunc(maps.Keys(e.providers), ProviderRef.compare) {
		list = append(list, e.providers[ref])
		e.systems[ref] = e.systemOf(e.providers[ref])
	}
	return list
}

func (r ProviderRef) compare(o ProviderRef) int { return strings.Compare(r.String(), o.String()) }

// providerBlock evaluates the instances of one block.
func (l *loader) providerBlock(e *evaluator, ref ProviderRef) []Provider {
	b := e.declared.providers[ref]
	if m := l.providerType(b, ref.Type); m != nil {
		l.diags = append(l.diags, m)
		return nil
	}
	n := &node{name: nodeName{"provider", ref.Type + "." + ref.Name}, rng: b.DefRange()}
	forEach := b.Body.Attributes["for_each"]
	if forEach != nil {
		l.addReferences(e.declared, n, scope{owner: n.name, plain: quoteName(n.name)}, forEach.Expr)
	}
	l.addReferences(e.declared, n, scope{owner: n.name, each: forEach != nil, plain: quoteName(n.name)}, expressions(b.Body, providerShapes[ref.Type])...)
	items, ok := l.providerKeys(e, n, forEach)
	if !ok || len(items) == 0 { // mistakes in it count all the same
		l.providerInstance(e, n, ref, instanceInput{item: item{value: cty.DynamicVal}, quiet: true, each: true})
		return nil
	}
	var all []Provider
	for _, it := range items {
		ref.Key = it.Key
		all = append(all, l.providerInstance(e, n, ref, instanceInput{item: it, each: forEach != nil}))
	}
	return all
}

// providerType returns the mistake in the type of a block.
func (l *loader) providerType(b *hclsyntax.Block, typ string) *hcl.Diagnostic {
	_, ok := providerShapes[typ]
	switch {
	case !ok:
		return mistake(b.LabelRanges[0], "Unknown provider type", "There is no provider type %q.%s", typ,
			DidYouMean(typ, slices.Sorted(maps.Keys(providerShapes))))
	case !l.in.hasType(typ):
		return mistake(b.LabelRanges[0], "Missing provider type", "This build of vmctl has no provider of type %q.", typ)
	default:
		return nil
	}
}

// providerKeys returns the keys of a provider's for_each; false: it found a mistake.
func (l *loader) providerKeys(e *evaluator, n *node, forEach *hclsyntax.Attribute) ([]item, bool) {
	if forEach == nil {
		return []item{{}}, true
	}
	if n.invalid[forEach.Expr] {
		return nil, false
	}
	value, diags := evaluate(forEach.Expr, e.base.context(n))
	l.diags = append(l.diags, diags...)
	if diags.HasErrors() {
		return nil, false
	}
	items, summary, problem := forEachItems(value, "providers")
	if problem != "" && (summary != unknownForEach || !e.base.needsInvalid(n)) {
		l.diags = append(l.diags, mistake(forEach.Expr.Range(), summary, "`for_each` of `%s` %s", n.name, problem))
	}
	return items, problem == ""
}

func (w *evaluation) needsInvalid(n *node) bool {
	return slices.ContainsFunc(n.targets, func(t target) bool { return w.isInvalid(t.nodeName) })
}

func (l *loader) providerInstance(e *evaluator, n *node, ref ProviderRef, it instanceInput) Provider {
	b, shape, w := e.declared.providers[ref.Block()], providerShapes[ref.Type], e.base
	d := &decoder{
		ctx: it.context(w.context(n)), files: e.files, invalid: n.invalid, shape: shape,
		owner: ref.Block().String(), instance: ref.String(), origin: "default of " + ref.Type,
		quiet: it.quiet || w.needsInvalid(n),
	}
	decoded := d.block(b.Body, shape, location{rng: b.DefRange()})
	l.diags = append(l.diags, d.diags...)
	attrs := shape.project(wanted, decoded).Value
	return Provider{Ref: ref, Attrs: attrs, Range: b.DefRange()}
}

// providerOf returns the provider of one instance, whose key ctx may hold; false: it is not
// known, and that was reported.
func (w *evaluation) providerOf(n *node, ctx *hcl.EvalContext, quiet bool) (ProviderRef, bool) {
	ref, expr := n.resource.provider, n.resource.providerKey
	if expr == nil {
		return ref, ref != (ProviderRef{})
	}
	if n.invalid[expr] {
		return ProviderRef{}, false
	}
	v, diags := evaluate(expr, ctx)
	w.diags = append(w.diags, diags...)
	if diags.HasErrors() {
		return ProviderRef{}, false
	}
	problem := ""
	key, err := convert.Convert(v, cty.String)
	switch {
	case v.ContainsMarked():
		problem = "is sensitive, but addresses show it."
	case err != nil:
		problem = fmt.Sprintf("is %s; the key of a provider is a string.", describeType(v.Type()))
	case !key.IsKnown():
		problem = "must be known before anything is observed. Use variables, locals and attributes that the spec sets."
		if quiet {
			return ProviderRef{}, false
		}
	case key.IsNull() || key.AsString() == "":
		problem = "is empty. A key has at least one character."
	default:
		ref.Key = key.AsString()
		return ref, true
	}
	w.diags = append(w.diags, mistake(expr.Range(), "Invalid key", "The key of `provider` of `%s` %s", n.name, problem))
	return ProviderRef{}, false
}

// checkProviders reports instances that name a key which their provider does not have.
func (l *loader) checkProviders(e *evaluator) {
	for _, n := range e.order {
		for _, i := range e.base.result(n).instances {
			ref := i.resource.Provider
			if _, ok := e.providers[ref]; ok || ref.Key == "" || !i.resource.Inside.isZero() {
				continue
			}
			var keys []string
			for _, other := range slices.SortedFunc(maps.Keys(e.providers), ProviderRef.compare) {
				if other.Block() == ref.Block() {
					keys = append(keys, other.Key)
				}
			}
			if len(keys) == 0 && l.diags.HasErrors() {
				continue // its own mistakes have been reported
			}
			l.diags = append(l.diags, mistake(n.resource.Body.Attributes["provider"].Expr.Range(), "Unknown key",
				"`%s` has no key %q.%s", ref.Block(), shorten(ref.Key), keysHint(ref.Key, keys)))
		}
	}
}

// system returns the key of the system that a provider block leads to.
func (e *evaluator) system(ref ProviderRef) string {
	if key, ok := e.systems[ref]; ok {
		return key
	}
	return ref.String()
}

func (e *evaluator) systemOf(p Provider) string {
	switch {
	case !p.Attrs.IsWhollyKnown():
		return p.Ref.String()
	case e.in.System != nil:
		return e.in.System(p.Ref, p.Attrs)
	default:
		return p.Ref.Type + " " + p.Attrs.GoString()
	}
}

// hasType reports whether this build has a type of provider.
func (in Inputs) hasType(typ string) bool {
	if typ == HostType {
		return true
	}
	if in.ProviderTypes == nil {
		_, ok := providerShapes[typ]
		return ok
	}
	return slices.Contains(in.ProviderTypes, typ)
}
