package engine

import (
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

// useClaim is the claim of whoever uses a volume, a network, or the content of an image.
func useClaim(thing, name string) providers.Claim {
	return providers.Claim{Kind: providers.ClaimUse, Key: thing + " " + name}
}

// addUses adds the claims of a container on all that an engine does not remove while the container is there. A network
// is removed from a container of others that is down.
func (s seen) addUses(o *providers.Object) {
	if s.imageID != "" {
		o.Holds = append(o.Holds, useClaim("image", s.imageID))
	}
	for _, name := range s.volumes {
		o.Holds = append(o.Holds, useClaim("volume", name))
	}
	for _, name := range s.networks {
		switch {
		case s.labels[labelToken] != "":
			o.Holds = append(o.Holds, useClaim("network", name))
		case s.wantable() != stateCreated:
			o.HoldsUp = append(o.HoldsUp, useClaim("network", name))
		}
	}
}

// claimOnlyName is the kind of the claim of the only name of an image. Its key is the engine's ID of the image.
const claimOnlyName = "the only name of"

// isNamedTwice reports whether an image has another name, too.
func isNamedTwice(o *providers.Object) bool {
	return o != nil && o.Kind == spec.Image && !slices.ContainsFunc(o.Holds, func(c providers.Claim) bool { return c.Kind == claimOnlyName })
}

// ended returns the claims that the removal of an object takes: nobody may use it any more.
func ended(o *providers.Object) []providers.Claim {
	switch o.Kind { //nolint:exhaustive // nobody uses a container
	case spec.Volume, spec.Network:
		return []providers.Claim{useClaim(things[o.Kind], o.Name)}
	case spec.Image:
		for _, c := range o.Holds {
			if c.Kind == claimOnlyName {
				return []providers.Claim{useClaim("image", c.Key)}
			}
		}
	}
	return nil
}
