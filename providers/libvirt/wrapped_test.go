package libvirt_test

import (
	"testing"

	"vmctl/providers/providertest"
)

// Faults wrap this driver, too.
func TestFaults(t *testing.T) {
	providertest.RunFaults(t, providertest.Harness{
		New: func(t *testing.T) *providertest.World { return newLab(t).world() },
	})
}
