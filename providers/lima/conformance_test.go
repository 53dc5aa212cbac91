//go:build unix

package lima_test

import (
	"testing"

	"vmctl/providers/providertest"
)

// The provider keeps all promises of a provider of VMs and disks. Its processes are stand-ins; the scripts of
// acceptance run the real ones.
func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{New: func(t *testing.T) *providertest.World { return newHouse(t).world() }})
}
