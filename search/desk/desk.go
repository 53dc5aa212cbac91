// Package desk adds a kind to the language that only the search has: a desk, which is a box in a VM at which people work.
package desk

import (
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// Kind is a box in a VM at which people leave work that exists nowhere else: the lines of the file "work" in its folder.
var Kind = spec.Register(spec.Block{ //nolint:gochecknoglobals // a kind is registered once
	Version: 1, Name: "desk", In: &spec.In{Attr: "in", Kinds: []spec.Kind{spec.VM}, Optional: true}, Work: true,
	Doc: "A box inside of a virtual machine, at which people work.", Attrs: box.Attrs(),
})

// Type returns the type of the provider of desks. Before each step it asks strike whether that is to fail; nil: none is.
func Type(strike func(op string) error) providers.Type {
	return box.TypeOf("desk", Kind, "desks", strike)
}
