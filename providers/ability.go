package providers

// Wrapper is a provider around another one.
type Wrapper interface {
	// Unwrap returns the inner provider.
	Unwrap() Provider
}

// Ability returns the optional ability T of a provider, such as Reacher: its own, or else that of
// the provider that it wraps.
func Ability[T any](p Provider) (ability T, ok bool) {
	for {
		if ability, ok = p.(T); ok {
			return ability, true
		}
		w, wraps := p.(Wrapper)
		if !wraps {
			return ability, false
		}
		p = w.Unwrap()
	}
}
