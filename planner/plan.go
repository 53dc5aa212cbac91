// Package planner compares a spec, a state and the observed world, and decides what to do:
// Observe reads the world, Diff decides, Order makes an executable plan. Diff and Order are pure.
package planner

import (
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Plan holds the changes for the reader, and the steps for the executor. It is pure data: the
// same inputs give the same plan.
type Plan struct {
	Project  providers.Project
	Serial   uint64              // of the state it was made on
	Changes  []Change            // by address; no-ops included
	Checks   []spec.Check        // those of check blocks first, then by address
	Findings []providers.Finding // by kind and address
	Deferred []Deferred          // by address: to be planned once this plan was carried out
	Steps    []Step              // in an order that respects After
	// Known holds, by address, the values of objects on which references may rely once the plan is
	// carried out.
	Known   map[spec.Address]cty.Value
	Summary Summary
	Reach   []Reach // by address: what resources newly reach
}

// Change is a change of a provider with the facts that only the planner knows.
type Change struct {
	providers.Change
	Place
	To       *Place            // where the object is to be, and is not; nil: it stays where it is
	Provider spec.ProviderRef  // as the record will say
	Record   *state.Record     // nil: there was none
	Want     *spec.Resource    // nil: not in the spec
	Turn     spec.Address      // the block whose instances take turns with this; zero: none do
	Needs    []spec.Address    // the addresses that it uses, by the spec if it is in there, else by its record
	Applies  providers.Applies // the most disruptive of its edits; "" without edits
	Busy     Busy              // of a VM: the holders at work in it
	Spec     string            // the digest of its spec, if it does anything and the spec is known; else ""
	Altered  bool              // Reason only repeats the reasons of its edits, mark and keys
	Blocked  *Block            // nil: free to go on
	Warnings []string

	// Policies lists the edits of the policy in its record, by path: how vmctl treats the object from
	// now on. They alter nothing of the object.
	Policies []providers.Edit

	Departures []Departure // what something other than vmctl changed of its object; nil: nothing

	Conditions []condition.Declared // of its kind, with their producers

	// Conditional says that it goes down only if a value that is known during apply turns out to
	// be another one.
	Conditional bool

	// Behind says that another data directory has brought the object to the wanted state, and
	// that the record here is older. An apply updates the record without a step.
	Behind bool

	// Inapplicable says that nothing is read or done about it because of a setting of the object around it.
	Inapplicable bool

	// Checked says that it has postconditions, which an apply evaluates once its object was changed.
	Checked bool
	// Undecided says that it has a precondition that only an apply can evaluate, before it makes or changes the object. No step
	// of it takes the object down.
	Undecided bool

	booted    time.Time // when its host was booted; zero: not known
	scripts   []script  // of a VM, in their order
	importing bool      // its object is not vmctl's yet
	unchosen  *Block    // why no address could be chosen for it; nil: it has what it needs
	mistake   error     // of its block, which shows only with the values of other objects; nil: none
	// with is the object around it that is replaced: it ends with that one and is made again in the
	// new one. Zero: there is none.
	with      spec.Address
	observed  bool // it is inside of another object, and Object was seen there
	along     bool // it is an orphan that goes with the object that it is inside of
	mayHold   bool // work may be inside of its object that no record tells of
	unread    bool // it could not be read
	prevented bool // prevent_destroy is set, and nothing the user said lifts it
	lets      bool // a removed block lets go of it
	newPolicy bool // the wanted policy is not the recorded one

	valuesBehind bool // the record lacks settings that the object has by now: a run was cut short, or somebody else was faster
}

// Place is where an object is, or is to be made.
type Place struct {
	System   string         // key of the World's system
	Settings cty.Value      // of its provider, resolved, as the record will say
	Inside   spec.Address   // the object that it is inside of; zero: none
	Around   []spec.Address // the objects that it is inside of, Inside first
}

// Aim returns the place in which a change leaves its object.
func (c *Change) Aim() Place {
	if c.To != nil {
		return *c.To
	}
	return c.Place
}

// BlockKind is a kind of Block.
type BlockKind string

// The user can allow a blocked change. A refused change can never be made this way. For an
// unknown one, something could not be read. A retained object stays because others use it, and a skipped one because it, or what it
// rests on, could not be read and the spec says to go on: the rest of the plan is carried out.
const (
	Blocked BlockKind = "blocked"
	Refused BlockKind = "refused"
	Unknown BlockKind = "unknown"

	Retained BlockKind = "retained"
	Skipped  BlockKind = "skipped"
)

// Block is the problem for which a change must not happen.
type Block struct {
	Cause Cause
	Attr  string // the edit, "mark" or "ssh.keys" whose reason is the problem; "": none
	// Wake is the object that is off and would have to be started to see whether the change may be made; zero: none is.
	Wake spec.Address
	// Skipped says that it keeps nothing else of the plan from being carried out (vmctl.refresh.on_unknown).
	Skipped bool
	*providers.Problem

	by spec.Address // the address whose own block it follows from; zero: none
}

// unread returns the block of a change that rests on what could not be read.
func unread(p *providers.Problem) *Block { return &Block{Cause: CauseUnknown, Problem: p} }

// Kind returns the kind of the block, which its cause decides.
func (b *Block) Kind() BlockKind {
	if b.Skipped {
		return Skipped
	}
	if b.Cause == CauseUnknown {
		return Unknown
	}
	if b.Cause == CauseRefused {
		return Refused
	}
	if b.Cause == CauseRetained {
		return Retained
	}
	return Blocked
}

// Step is a provider's step with its place in the plan.
type Step struct {
	providers.Step
	ID     int    // index in Plan.Steps
	Change int    // index in Plan.Changes
	System string // key of the World's system in which it acts
	After  []int  // IDs of steps that must have ended well; sorted
	Record bool   // the executor does it alone: it writes the record and calls no provider
}

// Summary counts changes by action.
type Summary struct {
	Actions map[providers.Action]int
	Blocked int
	Refused int
	Unknown int // addresses that could not be read
	// Retained counts the objects that are to be destroyed and stay, because others use them.
	Retained int
	// Skipped counts the changes that are left out since something could not be read.
	Skipped int
	// Deferred counts the addresses that are read once the plan was carried out.
	Deferred int
	// Inapplicable counts the addresses about which nothing is read or done; they are in no other count.
	Inapplicable int
}

// Pending reports whether anything would be done, is blocked or was deferred.
func (p *Plan) Pending() bool {
	return len(p.Steps)+len(p.Deferred) > 0 || p.Summary.Blocked+p.Summary.Refused+p.Summary.Unknown+p.Summary.Retained+p.Summary.Skipped > 0
}

// Forbidden reports whether a change in scope is blocked, refused or unknown:
// apply then starts nothing.
func (p *Plan) Forbidden() bool {
	return p.Summary.Blocked+p.Summary.Refused+p.Summary.Unknown > 0
}
