package providers

import (
	"context"

	"vmctl/spec"
)

// Via is the way of a provider inside of an object to that object.
type Via struct {
	Address spec.Address
	// Object returns the object as it is now: after a restart it has other ports, and after a
	// replacement another ID. It fails while there is no object. It may be called from several
	// goroutines.
	Object func(context.Context) (Object, error)
	// Enter returns the inside of the object as it is now. All that is inside of an object shares it,
	// and nobody closes it; it ends when a step takes the object down, so that each use enters anew. It
	// fails as Object does, and where the object cannot be entered. Several goroutines may call it.
	Enter func(context.Context) (Guest, error)
}
