package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"vmctl/internal/ctyread"
)

// resourceBlock is a resource block as it stands in a file.
type resourceBlock struct {
	*hclsyntax.Block
	shape       Block
	forEach     hclsyntax.Expression // nil: one instance without a key
	provider    ProviderRef          // without its key; zero for a resource inside of another
	providerKey hclsyntax.Expression // nil: the provider has no for_each
	dependsOn   []reference
	rules       []*rule // its preconditions and postconditions
}

// instance is one resource of a block.
type instance struct {
	resource     Resource
	export       map[string]cty.Value // the attributes that references see, without computed ones; nil if nothing refers to the block
	object       cty.Value            // the value of references while no computed attribute is known; cty.NilVal if nothing refers to the block
	resourceRefs []resourceRef
}

// evaluateResource decodes the instances of a resource block.
func (w *evaluation) evaluateResource(n *node, r *result, ctx *hcl.EvalContext, only string) {
	items, ok := w.forEach(n, r, ctx)
	quiet := r.invalid
	if !ok || len(items) == 0 {
		// There is nothing to make of the block, but mistakes in it count.
		unknown := item{Key: "", value: cty.DynamicVal}
		w.decodeInstance(n, &result{}, ctx, instanceInput{item: unknown, quiet: true, each: n.resource.forEach != nil})
	}
	if !ok {
		r.invalid = true
		return
	}
	if only == "" {
		r.instances = make([]instance, 0, len(items))
	}
	for _, it := range items {
		if only != "" && only != it.Key {
			continue
		}
		i := w.decodeInstance(n, r, ctx, instanceInput{item: it, quiet: quiet, each: n.resource.forEach != nil})
		if len(r.instances) > 0 {
			i.share(&r.instances[0])
		}
		r.instances = append(r.instances, i)
	}
}

// share lets i use the memory of another instance of its block for what is the same in both: that
// is half of what thousands of instances hold.
func (i *instance) share(other *instance) {
	if slices.EqualFunc(i.resource.Defaults, other.resource.Defaults, func(a, b Default) bool { return a.Path == b.Path }) {
		i.resource.Defaults = other.resource.Defaults
	}
	if i.resource.Policy.RawEquals(other.resource.Policy) {
		i.resource.Policy = other.resource.Policy
	}
	i.resource.Want = sharingType(i.resource.Want, other.resource.Want)
	i.object = sharingType(i.object, other.object)
}

// sharingType returns v with the type of another value in place of its own, if they are equal: to
// cty, the type of an object is a map as large as the one of its values, and each object has its own.
// The elements of a list have one type.
func sharingType(v, other cty.Value) cty.Value {
	if v == cty.NilVal || other == cty.NilVal || !v.Type().Equals(other.Type()) {
		return v
	}
	return cty.ListVal([]cty.Value{other, v}).Index(cty.NumberIntVal(1))
}

// instanceInput holds the properties in which the instances of a block differ.
type instanceInput struct {
	item
	quiet bool // a value may be unknown because of a mistake
	each  bool // whether each.key and each.value exist
}

// context returns ctx with the value of each.
func (it instanceInput) context(ctx *hcl.EvalContext) *hcl.EvalContext {
	if !it.each {
		return ctx
	}
	key := cty.UnknownVal(cty.String)
	if it.Key != "" {
		key = cty.StringVal(it.Key)
	}
	ctx = ctx.NewChild()
	ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": it.value})}
	return ctx
}

// decodeInstance decodes a block for one key.
func (w *evaluation) decodeInstance(n *node, r *result, ctx *hcl.EvalContext, it instanceInput) instance {
	b := n.resource
	ctx = it.context(ctx)
	addr := Address{Kind: Kind(b.Type), Name: b.Labels[0], Key: it.Key}
	takes := w.usesOf(n, ctx)
	uses := w.usesWith(takes, n, ctx)
	d := &decoder{
		ctx:      ctx,
		files:    w.files,
		invalid:  n.invalid,
		owner:    addr.Block().String(),
		instance: addr.String(),
		origin:   "default of " + b.Type,
		quiet:    it.quiet,
		shape:    b.shape,
		uses:     uses,
	}
	stand, sound := w.placement(n, *d)
	if sound {
		d.provider, d.supports = stand.provider.Type, w.supports(n, stand)
	}
	decoded := d.block(b.Body, b.shape, location{rng: b.DefRange()})
	w.diags = append(w.diags, d.diags...)
	if d.diags.HasErrors() {
		r.invalid = true
	}
	if _, ok := b.Body.Attributes["provider"]; !ok && b.shape.In == nil {
		d.defaults = slices.Insert(d.defaults, 0, Default{Path: "provider", Value: cty.StringVal(b.provider.String()), Origin: "built in"})
	}
	want, treatment := b.shape.project(wanted, decoded), b.shape.project(policy, decoded)
	i := instance{resource: Resource{
		Address:  addr,
		Provider: stand.provider,
		Inside:   stand.inside,
		Want:     want.Value,
		Plain:    !want.pending && !want.secret,
		Policy:   treatment.Value,
		Missing:  d.missing,
		Uses:     uses,
		Takes:    takes,
		Defaults: d.defaults,
		Range:    b.DefRange(),
	}, resourceRefs: d.resourceRefs}
	if sound && !d.diags.HasErrors() {
		var objections hcl.Diagnostics
		i.resource, objections = w.expand(n, i.resource)
		w.diags = append(w.diags, objections...)
	}
	r.pending = r.pending || want.pending || treatment.pending
	if n.referred {
		i.export = b.shape.project(exported, decoded).AsValueMap()
		i.object = i.withComputed(b.shape, cty.NilVal)
	}
	return i
}

// usesWith lists the resources that one instance uses: those in takes, and those in its
// depends_on and its conditions.
func (w *evaluation) usesWith(takes []Address, n *node, ctx *hcl.EvalContext) []Address {
	if len(n.resource.dependsOn)+len(n.resource.rules) == 0 {
		return takes
	}
	uses := map[Address]bool{}
	for _, addr := range takes {
		uses[addr] = true
	}
	for _, ref := range n.resource.dependsOn {
		w.addUses(uses, ref, ctx)
	}
	for _, r := range n.resource.rules {
		for _, addr := range w.usesOf(r.node, ctx) {
			uses[addr] = true
		}
	}
	return sortedAddresses(uses)
}

// expand returns a resource with what its attributes name elsewhere in its place, and the objections of the
// provider, each at its place in the block.
func (w *evaluation) expand(n *node, r Resource) (Resource, hcl.Diagnostics) {
	if !w.in.hasType(r.Provider.Type) {
		return r, nil
	}
	typ := placement{provider: r.Provider, inside: r.Inside}.manager()
	if w.in.Expand != nil {
		r.Want, r.Unread = w.in.Expand(typ, r.Address.Kind, r.Want, w.files.dir)
	}
	secrets, want := map[string]bool{}, r.Want
	if !r.Plain {
		collectSecrets(want, secrets, false)
		want = Revealed(want)
	}
	hide := func(f *Flaw) {
		for secret := range secrets {
			if secret != "" && strings.Contains(f.Detail, secret) {
				f.Detail = "The reason is not shown: it contains a sensitive value."
			}
		}
	}
	if r.Unread != nil {
		hide(&r.Unread.Flaw)
		r.Unread.Range = n.resource.rangeAt(r.Unread.Path)
	}
	var flaws []Flaw
	if w.in.Check != nil && r.Unread == nil { // what is not read yet may be what seems to be missing
		flaws = w.in.Check(typ, r.Address.Kind, want)
	}
	var diags hcl.Diagnostics
	for _, f := range flaws {
		hide(&f)
		diags = append(diags, mistake(n.resource.rangeAt(f.Path), f.Summary, "%s", f.Detail))
	}
	return r, diags
}

// rangeAt returns the range of the attribute or the nested block of a path in a block, else of the
// block's header.
func (b *resourceBlock) rangeAt(path string) hcl.Range {
	first, _, _ := strings.Cut(path, ".")
	if a, ok := b.Body.Attributes[first]; ok {
		return a.Range()
	}
	for _, nested := range b.Body.Blocks {
		if nested.Type == first {
			return nested.DefRange()
		}
	}
	return b.DefRange()
}

// resourceValue returns the value of a reference to a resource block: an object, or an object of
// objects by key. keys lists the instances that matter; nil: all.
func (w *evaluation) resourceValue(n *node, keys map[string]bool) cty.Value {
	r := w.result(n)
	if n.resource.forEach == nil {
		if len(r.instances) == 0 {
			return cty.DynamicVal
		}
		return w.objectOf(n, r.instances[0])
	}
	if r.invalid && len(r.instances) == 0 {
		return cty.DynamicVal
	}
	objects := map[string]cty.Value{}
	for _, i := range r.instances {
		if key := i.resource.Address.Key; keys == nil || keys[key] {
			objects[key] = w.objectOf(n, i)
		}
	}
	return cty.ObjectVal(objects)
}

func (w *evaluation) objectOf(n *node, i instance) cty.Value {
	if is, ok := w.observed[i.resource.Address]; ok {
		i.export = withObserved(n.resource.shape, i.export, is)
	} else if w.observed != nil { // there is no object: what the files say of it is an edit that waits
		return cty.DynamicVal
	}
	values, ok := w.computed[i.resource.Address]
	if !ok {
		return i.object
	}
	i.export = i.withIgnored(n.resource.shape, values)
	return i.withComputed(n.resource.shape, values)
}

// withIgnored returns the attributes of an instance as references see them, with those that its ignore_changes names as they are: what
// the files say of them is never applied.
func (i instance) withIgnored(shape Block, values cty.Value) map[string]cty.Value {
	list := ctyread.List(ctyread.Attr(ctyread.Attr(i.resource.Policy, "lifecycle"), "ignore_changes"))
	ignored := map[string]bool{}
	for _, path := range list {
		if path.IsKnown() && !path.IsNull() {
			ignored[path.AsString()] = true
		}
	}
	if len(ignored) == 0 {
		return i.export
	}
	all := maps.Clone(i.export)
	for _, a := range shape.Attrs {
		v := ctyread.Attr(values, a.Name)
		named := ignored[a.Name] || ignored["all"] && a.Name != "running"
		if !named || !wanted.has(a, shape) || v == cty.NilVal || v.IsNull() || v.ContainsMarked() || all[a.Name].ContainsMarked() || !v.IsWhollyKnown() {
			continue
		}
		if v, err := convert.Convert(v, a.Type); err == nil {
			all[a.Name] = exported.value(a, v)
		}
	}
	return all
}

// withObserved returns attributes as references see them, with those that an object really has in their
// place. A sensitive one stays as it is.
func withObserved(shape Block, export map[string]cty.Value, object cty.Value) map[string]cty.Value {
	all := maps.Clone(export)
	for _, a := range shape.Attrs {
		v := ctyread.Attr(object, a.Name)
		if !wanted.has(a, shape) || v == cty.NilVal || v.ContainsMarked() || all[a.Name].ContainsMarked() || !v.IsWhollyKnown() {
			continue
		}
		if v, err := convert.Convert(v, a.Type); err == nil {
			all[a.Name] = exported.value(a, v)
		}
	}
	return all
}

// withComputed returns the value of a reference to an instance, with the computed attributes in
// values.
func (i instance) withComputed(shape Block, values cty.Value) cty.Value {
	object := maps.Clone(i.export)
	for _, a := range shape.Attrs {
		if a.Computed {
			object[a.Name] = computedValue(values, a.Name, a.Type)
		}
	}
	// A name that is left out is chosen when the object is made.
	if name, ok := object["name"]; ok && name.IsKnown() && name.IsNull() {
		object["name"] = computedValue(values, "name", cty.String)
		if object["name"].IsKnown() && object["name"].IsNull() {
			object["name"] = cty.UnknownVal(cty.String)
		}
	}
	return cty.ObjectVal(object)
}

// computedValue returns one attribute of recorded values, unknown if they do not have it.
func computedValue(values cty.Value, attr string, ty cty.Type) cty.Value {
	if values == cty.NilVal || !values.IsKnown() || values.IsNull() ||
		!values.Type().IsObjectType() || !values.Type().HasAttribute(attr) {
		return cty.UnknownVal(ty)
	}
	v, err := convert.Convert(values.GetAttr(attr), ty)
	if err != nil {
		return cty.UnknownVal(ty)
	}
	return v
}

// placement names the provider of an instance, and the resource that it is inside of, if any.
type placement struct {
	provider ProviderRef
	inside   Address
}

// manager returns the type of provider that manages what is placed there: HostType for what is inside of another resource.
func (p placement) manager() string {
	if p.inside != (Address{}) {
		return HostType
	}
	return p.provider.Type
}

// placement returns the placement of the instance that d is about to decode; false: a mistake
// hides it.
func (w *evaluation) placement(n *node, d decoder) (placement, bool) {
	in := n.resource.shape.In
	if in == nil {
		ref, ok := w.providerOf(n, d.ctx, d.quiet)
		return placement{provider: ref}, ok
	}
	here := placement{provider: OnThisHost(Kind(n.resource.Type))}
	if in.Attr == "" {
		return here, true
	}
	if _, own := n.resource.shape.attr("provider"); own {
		of, at := n.resource.Body.Attributes[in.Attr], n.resource.Body.Attributes["provider"]
		switch {
		case of == nil && at == nil:
			w.diags = append(w.diags, mistake(n.resource.DefRange(), "Missing attribute", "`%s` needs `%s` or `provider`, which says where it is made.", n.resource.name(), in.Attr))
			return placement{}, false
		case of != nil && at != nil:
			w.diags = append(w.diags, mistake(laterOf(of.SrcRange, at.SrcRange), "Conflicting attributes", "`%s` has both `%s` and `provider`, but is made in only one of them. Remove one.", n.resource.name(), in.Attr))
			return placement{}, false
		case at != nil:
			ref, ok := w.providerOf(n, d.ctx, d.quiet)
			return placement{provider: ref}, ok
		}
	}
	// A mistake in the attribute is reported when the block is decoded.
	known, _ := n.resource.shape.attr(in.Attr)
	name := d.attribute(n.resource.Body.Attributes[known.Name], known, n.resource.shape, location{})
	if name.IsKnown() && name.IsNull() && in.Optional {
		return here, true
	}
	if !name.IsKnown() || name.IsNull() {
		return placement{}, false
	}
	to, err := ParseAddress(name.AsString())
	if err != nil {
		return placement{}, false
	}
	parent := w.result(w.nodes[nodeName{string(to.Kind), to.Name}]).instance(to.Key)
	if parent == nil || parent.resource.Provider == (ProviderRef{}) {
		return placement{}, false
	}
	return placement{provider: parent.resource.Provider, inside: to}, true
}
