package sim_test

import (
	"testing"

	"vmctl/internal/real"
	"vmctl/providers/providertest"
)

func TestConformance(t *testing.T) {
	real.Long(t)
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T) *providertest.World { return newHouse(t).world(false) },
	})
}

func TestConformanceWithoutProcesses(t *testing.T) {
	real.Long(t)
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T) *providertest.World { return newHouse(t).world(true) },
	})
}

func TestConformanceWithHostAgents(t *testing.T) {
	real.Long(t)
	providertest.Run(t, providertest.Harness{
		New: func(t *testing.T) *providertest.World {
			h := newHouse(t)
			h.hostAgent = true
			return h.world(false)
		},
	})
}
