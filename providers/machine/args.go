package machine

import "vmctl/providers"

// Args holds the arguments of a step of a VM.
type Args struct {
	// WhenUp says that a stop waits until an object that is still starting is up, or its time
	// for that is over.
	WhenUp bool
	// NewPorts says that a start leaves the choice of all host ports to the kernel: another
	// change takes one that the object had.
	NewPorts bool
	// ThenMake says that the change makes another object in place of the removed one. NextName
	// and NextID are the name and the ID of that one, if it has another name: the name has to be
	// free already.
	ThenMake bool
	NextName string
	NextID   providers.ID
	// ThenRedefine says that the change writes another definition once the object is down: the step
	// checks that definition first.
	ThenRedefine bool
	// Keys says which keys a redefinition gives the guest.
	Keys Keys
	// RunOnly says that the object exists: only the remains of its last run are removed.
	RunOnly bool
	// Source is the file that is uploaded.
	Source string
}

// Keys says which keys a guest gets.
type Keys string

// The keys of a guest.
const (
	KeysKept  Keys = ""      // the present ones
	KeysSame  Keys = "same"  // the present ones, with the spec's keys of other people
	KeysGiven Keys = "given" // those that the spec names
	KeysNew   Keys = "new"   // new ones
)

// ArgsOf returns the arguments of a step.
func ArgsOf(s providers.Step) Args {
	a, _ := s.Args.(Args) // a step of another kind has none
	return a
}

// Words returns the arguments that are set, by name.
func (a Args) Words() [][2]string {
	var all [][2]string
	add := func(set bool, name, value string) {
		if set {
			all = append(all, [2]string{name, value})
		}
	}
	add(a.NextID != "", "id", string(a.NextID))
	add(a.Keys != KeysKept, "keys", string(a.Keys))
	add(a.NextName != "", "name", a.NextName)
	add(a.NewPorts, "new_ports", "true")
	add(a.RunOnly, "run_only", "true")
	add(a.Source != "", "source", a.Source)
	add(a.ThenMake, "then_make", "true")
	add(a.ThenRedefine, "then_redefine", "true")
	add(a.WhenUp, "when_up", "true")
	return all
}
