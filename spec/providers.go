package spec

import (
	"maps"
	"slices"
	"strings"
)

// providers evaluates the provider blocks.
func (l *loader) providers(e *evaluator) []Provider {
	e.providers = map[ProviderRef]Provider{}
	for _, ref := range slices.SortedFunc(maps.Keys(e.declared.providers), ProviderRef.compare) {
		if p, ok := l.providerBlock(e, ref); ok {
			e.providers[ref] = p
		}
	}
	for _, n := range e.order {
		if n.resource == nil {
			continue
		}
		ref := n.resource.provider
		if _, declared := e.declared.providers[ref]; !declared && ref == builtIn() {
			attrs := providerShapes[ref.Type].on(wanted, (&decoder{}).block(nil, providerShapes[ref.Type], place{}))
			e.providers[ref] = Provider{Ref: ref, Attrs: attrs, BuiltIn: true}
		}
	}
	var list []Provider
	for _, ref := range slices.SortedFunc(maps.Keys(e.providers), ProviderRef.compare) {
		list = append(list, e.providers[ref])
	}
	return list
}

func (r ProviderRef) compare(o ProviderRef) int { return strings.Compare(r.String(), o.String()) }

func (l *loader) providerBlock(e *evaluator, ref ProviderRef) (Provider, bool) {
	b := e.declared.providers[ref]
	shape, ok := providerShapes[ref.Type]
	switch {
	case slices.Contains(laterProviders, ref.Type):
		l.diags = append(l.diags, mistake(b.LabelRanges[0], "Not built in yet", "Providers of type %q are not built in yet.", ref.Type))
		return Provider{}, false
	case !ok:
		l.diags = append(l.diags, mistake(b.LabelRanges[0], "Unknown provider type", "There is no provider type %q.%s", ref.Type,
			didYouMean(ref.Type, append(slices.Sorted(maps.Keys(providerShapes)), laterProviders...))))
		return Provider{}, false
	case !l.hasType(ref.Type):
		l.diags = append(l.diags, mistake(b.LabelRanges[0], "Missing provider type", "This build of vmctl has no provider of type %q.", ref.Type))
		return Provider{}, false
	}
	n := &node{name: name{"provider", ref.Type + "." + ref.Name}, rng: b.DefRange()}
	l.refer(e.declared, n, scope{owner: n.name, plain: true}, expressions(b.Body, shape)...)
	w := e.base
	d := &decoder{ctx: w.context(n), files: e.files, bad: n.bad, owner: ref.String(), origin: "default of " + ref.Type}
	for _, t := range n.targets {
		d.quiet = d.quiet || w.isTainted(t.name)
	}
	decoded := d.block(b.Body, shape, place{rng: b.DefRange()})
	l.diags = append(l.diags, d.diags...)
	return Provider{Ref: ref, Attrs: shape.on(wanted, decoded), Range: b.DefRange()}, true
}

// hasType reports whether this build has a type of provider.
func (l *loader) hasType(typ string) bool {
	if l.in.ProviderTypes == nil {
		_, ok := providerShapes[typ]
		return ok
	}
	return slices.Contains(l.in.ProviderTypes, typ)
}
