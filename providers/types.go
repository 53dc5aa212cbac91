package providers

import "vmctl/spec"

// Types holds the types of provider of one build.
type Types struct {
	Systems map[string]Type    // of the systems that provider blocks lead to, by name
	Inside  map[spec.Kind]Type // of what lives inside of other objects, by kind
}

// System returns the type of provider that a reference names; zero: there is none.
func (t Types) System(ref spec.ProviderRef) Type {
	if ref.IsOnThisHost() {
		return t.Inside[spec.Kind(ref.Name)]
	}
	return t.Systems[ref.Type]
}

// Of returns the type that manages a kind in a system, or inside of an object there, which is zero if the kind is inside of
// none; zero: there is none.
func (t Types) Of(system string, kind spec.Kind, inside spec.Address) Type {
	of, isSystem := t.Systems[system]
	if isSystem && inside == (spec.Address{}) {
		return of
	}
	if within, ok := t.Inside[kind]; ok {
		return within
	}
	return of
}
