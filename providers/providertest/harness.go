// Package providertest tests the duties of every provider of virtual machines. A provider
// joins with a Harness, in its own tests and on its real system; a demand that one provider
// cannot meet is a bug in the demand or in the provider.
package providertest

import (
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// Harness joins a provider to the suite.
type Harness struct {
	// New makes a system of its own for one test. Nothing of it is left when the test has
	// ended, with success or not.
	New func(t *testing.T) *World
}

// World describes one system, empty at first, and the functions with which the suite acts on
// it.
type World struct {
	Type     providers.Type
	Inside   map[spec.Kind]providers.Type // of the kinds inside of its VMs
	Settings providers.Settings
	// Want is a small VM that is wanted running and forwards no port. Policy has short waits
	// that are long enough, and force.
	Want, Policy cty.Value
	// Edits lists at least two attributes with another value than in Want. A running VM needs
	// a restart for each.
	Edits []Edit
	// Traces lists all that exists of the system's VMs, sorted, a line each: files with a
	// value that changes when they are written, processes, definitions.
	Traces func() []string
	// Foreign makes a VM of that name as somebody else would. look describes its present
	// state.
	Foreign func(name string) (look func() string)
	// Copy makes a copy of a VM, mark included, as somebody else would. The copy is another
	// object, and off.
	Copy func(o providers.Object) (name string)
	// Kill ends the processes of a VM, and returns when they are gone.
	Kill func(o providers.Object)
	// Deafen makes the VMs that are made from now on ignore requests to end.
	Deafen func(w *World)
	// Stick makes the VMs that are made from now on survive requests to end and force. nil: the
	// system cannot do that.
	Stick func(w *World)
	// Blind makes one VM unreadable, and no other.
	Blind func(o providers.Object)
	// Cut changes the settings so that the system gives no answer.
	Cut func(w *World)
	// Disks holds the disks for the suite, and the functions with which it acts on them.
	Disks Disks
	// Effects tells how the system shows the effects of attributes.
	Effects Effects
}

// Disks describes the disks of a system, and the functions with which the suite acts on them.
type Disks struct {
	// Want is a small disk of at most 8 MiB. Policy is its policy.
	Want, Policy cty.Value
	// Foreign makes a disk of that name as somebody else would, without a mark. look
	// describes its present state, and importID is its name in an import.
	Foreign func(name string) (importID string, look func() string)
	// Attach defines a VM of that name that uses a disk, as somebody else would. The VM is
	// off.
	Attach func(vm string, o providers.Object)
	// AtStart says that a VM gets a disk when it starts: attaching one to what runs needs a restart.
	AtStart bool
	// Fill writes into a disk as a guest would, within its first MiB. Filled reports whether
	// these bytes are still there.
	Fill   func(o providers.Object)
	Filled func(o providers.Object) bool
	// Halve reduces a disk to its mark, as a kill during its creation would.
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
