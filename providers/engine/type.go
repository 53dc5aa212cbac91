// Package engine manages a container engine, and what is inside of it: images, volumes, networks and
// containers. It speaks the engine's API through the guest of the machine that the engine runs on, so
// that it works in a VM of every provider and on this host.
//
// Objects bear their owner marks as labels, which travel in the call that makes them and can never be
// edited. An image can bear no mark: its record is the ownership.
package engine

import (
	"context"
	"errors"
	"time"

	"vmctl/providers"
)

// Host holds what this host has for engines.
type Host struct {
	Docker string // the folder of the configuration of Docker's client; "": it is not known
	// Serve returns the beginning of the command that serves an engine of the VM around a provider on this host; the path of the
	// socket in the VM and that on this host follow. nil: there is none.
	Serve   func(providers.Settings) []string
	Environ []string // of vmctl (NAME=value)
	// Sleep waits, between two looks at a container and after it was started. nil: as long as it is asked to.
	Sleep func(context.Context, time.Duration) error
}

// Types returns the type of the provider of engines, and that of what is inside of them.
func Types(h Host) []providers.Type {
	return []providers.Type{
		{
			Name: "engine", Kinds: engineKinds, Check: checkEngine,
			Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
				if s.Via == nil {
					return nil, errors.New("open an engine: it is not said where it runs")
				}
				return &Engines{settings: s, contexts: contexts{dir: h.Docker}, host: h}, nil
			},
		},
		{
			Name: "docker", Kinds: objectKinds, Check: check,
			Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
				if s.Via == nil {
					return nil, errors.New("open the inside of an engine: it is not said of which")
				}
				return newObjects(s, h)
			},
		},
	}
}
