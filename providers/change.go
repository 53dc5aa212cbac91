package providers

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// Change describes the plan's change of one address.
type Change struct {
	Address     spec.Address
	Kind        spec.Kind
	Action      Action
	Reason      string
	Name        string    // the object's name, chosen for what will be made
	ID          ID        // the object's ID; for what will be made, chosen before where the system allows
	Object      *Object   // nil: absent
	Prior, Want cty.Value // record; spec (may hold unknowns). cty.NilVal where there is none
	// Uses holds the resources that Want refers to. A resource that is not made yet has the
	// ID and the name that were chosen for it.
	Uses       map[spec.Address]Used
	Edits      []Edit
	Mark       *MarkEdit      // nil: the object keeps its owner mark
	Rekey      *Verdict       // how the guest gets other keys; nil: it keeps those that it has
	Policy     cty.Value      // start, stop, ssh.wait …
	Generation uint64         // of the new mark
	Replaced   int            // how often the address was replaced, this change included
	Was        []spec.Address // earlier addresses that the mark of the object may name
	// Yields lists the claims of the object that other changes take. Steps frees each claim
	// that the object does not keep in a step that sinks.
	Yields []Claim
	// Awaits lists the claims that the change takes once other changes have freed them.
	Awaits     []Claim
	Provisions []Provision // of a VM: its scripts, in their order
	Due        []Due       // what is due on an object that stays; nil: nothing
	// Succeeds says of a Destroy that another object takes the place of this one, and of a Create that it is that one: a
	// replacement in two halves, of an object that moves or goes with what it is inside of.
	Succeeds bool
	// Ends says of a Destroy that the object goes with what it is inside of, and of a Release that it is lost when that goes down:
	// the steps that save the work in it, or see that there is none, are enough.
	Ends bool
	// Discards says that the user lets the work go that exists only in the object.
	Discards bool
	// Preview holds what the system says that it would do. nil: it was not asked, or cannot tell yet.
	Preview *Preview
	// Unready says that the object runs and is to run, but was not seen ready since its
	// start, though its policy waits for that.
	Unready bool
}

// Used describes a resource that another one uses.
type Used struct {
	Kind spec.Kind
	ID   ID     // of its object, or chosen for the object that will be made
	Name string // of its object
}

// Edit is one difference of one attribute.
type Edit struct {
	Path          string
	Before, After cty.Value // NilVal or null where absent; After may be unknown
	Verdict       Verdict
}

// MarkEdit says that a change writes the owner mark of an object that exists: after an import, a
// move or the loss of the mark. It applies live.
type MarkEdit struct {
	Before spec.Address // the address that the present mark names; zero: it bears none
	Reason string
}

// Imports reports whether a change gives its mark to an object that bears none.
func (c Change) Imports() bool { return c.Mark != nil && c.Object != nil && c.Object.Owner == nil }

// Alters reports whether a change alters an attribute, the mark or the keys of its object.
func (c Change) Alters() bool { return len(c.Edits) > 0 || c.Mark != nil || c.Rekey != nil }
