//go:build unix

package lima_test

import (
	"testing"

	"vmctl/internal/real"
	"vmctl/providers/providertest"
)

// The provider keeps all promises of a provider of VMs and disks. Its processes are stand-ins; the scripts of
// acceptance run the real ones.
//
// row L63, of Lima's VMs: a step reads its object again, and refuses one that has changed
func TestConformance(t *testing.T) {
	real.Long(t)
	providertest.Run(t, providertest.Harness{New: func(t *testing.T) *providertest.World {
		t.Parallel()
		return newHouse(t).world()
	}})
}
