package spec

import (
	"slices"
)

// placement is the place of one instance: at a provider, and perhaps inside of a VM.
type placement struct {
	provider ProviderRef
	inside   Address
}

// placement returns the place of the instance that d is about to decode; false: a mistake keeps it
// from being known.
func (w *evaluation) placement(n *node, d decoder) (placement, bool) {
	known, inside := n.resource.shape.containerAttr()
	if !inside {
		ref, ok := w.providerOf(n, d.ctx, d.quiet)
		return placement{provider: ref}, ok
	}
	// A mistake in the attribute is reported when the block is decoded.
	vm := d.attribute(n.resource.Body.Attributes[known.Name], known, n.resource.shape, location{})
	if !vm.IsKnown() || vm.IsNull() {
		return placement{}, false
	}
	to, err := ParseAddress(vm.AsString())
	if err != nil {
		return placement{}, false
	}
	instances := w.result(w.nodes[nodeName{string(to.Kind), to.Name}]).instances
	i := slices.IndexFunc(instances, func(i instance) bool { return i.resource.Address == to })
	if i < 0 || instances[i].resource.Provider == (ProviderRef{}) {
		return placement{}, false
	}
	return placement{provider: instances[i].resource.Provider, inside: to}, true
}

// containerAttr returns the attribute that names the VM which a kind is inside of.
func (b Block) containerAttr() (Attr, bool) {
	a, ok := b.attr("vm")
	return a, ok && a.Refers == VM
}

func (b Block) isInside() bool {
	_, inside := b.containerAttr()
	return inside
}

// supports returns the function that asks a type of provider about the attributes of a block;
// nil: everything is supported, or nothing is known of the type. It reports a kind that the type
// does not support at all.
func (w *evaluation) supports(n *node, typ string) func(path string) bool {
	kind := Kind(n.resource.Type)
	if w.in.Supports == nil || !w.in.hasType(typ) {
		return nil
	}
	if !w.in.Supports(typ, kind, "") {
		w.diags = append(w.diags, mistake(n.resource.TypeRange, "Unsupported kind", "Provider %s does not support `%s` blocks. Remove it, or use another provider.", typ, kind))
		return nil
	}
	return func(path string) bool { return w.in.Supports(typ, kind, path) }
}
