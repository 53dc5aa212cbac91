//go:build unix

package lima_test

import (
	"testing"

	"vmctl/providers/providertest"
)

// The provider keeps all promises of a provider of VMs and disks; its processes are stand-ins. The real
// ones pass the suite in acceptance.
func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{New: func(t *testing.T) *providertest.World { return newHouse(t).world() }})
}
