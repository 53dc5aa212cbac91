// Package providertest says what every provider of virtual machines must do, as
// tests. A provider joins with a Harness, in its own tests and on its real
// system; a demand that one provider cannot meet is a bug in either.
package providertest

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
)

// Harness joins a provider to the suite.
type Harness struct {
	// New makes a system of its own for one test. Nothing of it is left when that
	// has ended, however it ends.
	New func(t *testing.T) *World
}

// World is one system, empty at first, as the suite acts on it.
type World struct {
	Type     providers.Type
	Settings providers.Settings
	// Want is a small VM that is wanted running and forwards no port, and Policy
	// how it is treated: short waits that are long enough, and force.
	Want, Policy cty.Value
	// Edits are at least two attributes with another value than in Want, each of
	// which takes a running VM a restart.
	Edits []Edit
	// Traces lists what there is of the system's VMs, sorted, a line each: files
	// with what changes when they are written, processes, definitions.
	Traces func() []string
	// Foreign makes a VM of that name as somebody else would. look says what it
	// is like.
	Foreign func(name string) (look func() string)
	// Copy makes a copy of a VM, mark included, as somebody else would. It is
	// another object, and off.
	Copy func(o providers.Object) (name string)
	// Kill ends what runs a VM, and returns when that is gone.
	Kill func(o providers.Object)
	// Deafen lets the VMs that are made from now on ignore requests to end.
	Deafen func(w *World)
	// Blind makes one VM unreadable, and no other.
	Blind func(o providers.Object)
	// Cut changes the settings so that the system gives no answer.
	Cut func(w *World)
	// Disks is how the suite acts on disks.
	Disks Disks
}

// Disks are the disks of a system, as the suite acts on them.
type Disks struct {
	// Want is a small disk of at most 8 MiB, and Policy how it is treated.
	Want, Policy cty.Value
	// Foreign makes a disk of that name as somebody else would, without a mark. look
	// says what it is like, and importID is what it is called in an import.
	Foreign func(name string) (importID string, look func() string)
	// Attach defines a VM of that name that uses a disk, as somebody else would. It
	// is off.
	Attach func(vm string, o providers.Object)
	// Fill writes into a disk as a guest would, within its first MiB, and Filled
	// reports whether that is still there.
	Fill   func(o providers.Object)
	Filled func(o providers.Object) bool
	// Halve leaves of a disk what is left of one whose making was killed: its mark.
	Halve func(o providers.Object)
}

// Edit is another value of an attribute.
type Edit struct {
	Path  string
	Value cty.Value
}

// Run runs every demand in a system of its own.
func Run(t *testing.T, h Harness) {
	for _, d := range slices.Concat(demands, diskDemands) {
		t.Run(d.name, func(t *testing.T) {
			d.check(newStage(t, h.New(t)))
		})
	}
}
