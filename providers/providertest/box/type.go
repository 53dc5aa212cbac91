package box

import (
	"context"
	"errors"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

func live(reason string) func(before, after cty.Value, running bool) providers.Verdict {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: reason}
	}
}

func paint(_, _ cty.Value, open bool) providers.Verdict {
	if !open {
		return providers.Verdict{Applies: providers.Live, Reason: "it is closed"}
	}
	return providers.Verdict{Applies: providers.Restart, Reason: "only a closed box can be painted"}
}

// Type returns the type of the provider of boxes. Before each step it asks strike whether that is to fail;
// nil: none is.
func Type(strike func(op string) error) providers.Type {
	return TypeOf("box", Kind, "boxes", strike)
}

// TypeOf returns the type of a provider of boxes of another kind, which lie in a folder of their own.
func TypeOf(name string, kind spec.Kind, folder string, strike func(op string) error) providers.Type {
	return providers.Type{
		Name: name, Kinds: map[spec.Kind]map[string]providers.Attribute{kind: attributes},
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			if s.Via == nil {
				return nil, errors.New("open the inside of an object: it is not said of which")
			}
			return &Provider{settings: s, strike: strike, kind: kind, folder: folder}, nil
		},
	}
}
