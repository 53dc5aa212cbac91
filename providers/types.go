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

// Of returns the type that manages a kind in a system, or inside of its objects; zero: there is
// none.
func (t Types) Of(system string, kind spec.Kind) Type {
	if inside, ok := t.Inside[kind]; ok {
		return inside
	}
	return t.Systems[system]
}
