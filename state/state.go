// Package state stores, for every address, what vmctl applied: records in a snapshot, continued by
// a journal of the running apply. It knows no provider: IDs and operations are strings to it.
package state

import (
	"cmp"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/spec"
)

// Format is the newest format of the snapshot that this build reads and writes.
const Format = 2

// Holder describes a process that holds the run lock, or that works inside a VM.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

// Snapshot holds the whole state.
type Snapshot struct {
	Format      int
	ID          string // the lineage
	Project     string
	Serial      uint64
	Records     map[spec.Address]Record
	Forgotten   map[string]spec.Address // object ID -> the address that it blocks while it exists; zero: none. No other object gets the ID
	Interrupted []Entry                 // begins of steps that are neither done nor failed, in order; a done step of a destruction stays until the record is gone
	Notes       []string                // remarks of the reader, for people; not stored
}

// Record holds the state of one address.
type Record struct {
	Kind       spec.Kind
	Provider   spec.ProviderRef
	Settings   cty.Value // the provider's attributes, resolved: they decide from then on
	ID, Name   string
	Generation uint64               // counts the changes of the resolved spec and of the object to it, failed ones included
	Spec       string               // digest of the resolved spec of Generation; "": of a build that made none
	Starts     int                  // how often vmctl started it
	Replaced   int                  // how often its object was replaced
	Values     cty.Value            // the applied attributes, and the computed ones
	Digests    map[string]string    // of sensitive values, by path
	Provisions map[string]Provision // the scripts that vmctl has run in it, by name
	Policy     cty.Value            // stop, start, lifecycle: as last applied
	Uses       []spec.Address
	Inside     spec.Address  // the VM that it is inside of; zero: none
	LastStop   string        // how it was last stopped: "graceful", "forced"; "" if never
	LastAction *Action       // nil: no command has acted on it by itself
	Reserved   bool          // its object was about to be made, under this ID and name; it may not exist
	Found      bool          // its object was there before this record: objects inside of it may have none
	Conditions condition.Set // as its producers last reported them
	// Kept holds what this build cannot read: whoever changes a record keeps it.
	Kept Kept
	// Was lists every earlier address of the object: its mark may still name one of
	// them.
	Was []spec.Address
}

// EntryKind is a kind of journal entry.
type EntryKind string

// A begin is durable before its step acts; done or failed is durable before
// anything that depends on the step; a note settles an earlier interruption.
const (
	Begin  EntryKind = "begin"
	Done   EntryKind = "done"
	Failed EntryKind = "failed"
	Note   EntryKind = "note"
)

// Values of Entry.How in a begin. Destroying and LettingGo: the step is a part of a destruction,
// or of letting go of an object, which stays. Deleting: the step is the part of a destruction that
// deletes the object. Replacing: the step deletes the object so that another takes its place.
const (
	Destroying = "destroying"
	LettingGo  = "letting go"
	Deleting   = "deleting"
	Replacing  = "replacing"
)

// Entry is one line of the journal.
type Entry struct {
	Serial  uint64       `json:"serial"` // of the snapshot that the journal continues
	Seq     uint64       `json:"seq"`    // place in the journal, from 1
	Run     string       `json:"run"`    // one per apply
	At      time.Time    `json:"at"`
	Kind    EntryKind    `json:"kind"`
	Step    int          `json:"step"` // of the plan
	Op      string       `json:"op"`
	Address spec.Address `json:"address"`
	ID      string       `json:"id,omitempty"`
	Name    string       `json:"name,omitempty"`
	Leaves  []string     `json:"leaves,omitempty"` // objects that the step may leave behind if it is interrupted
	Put     *Record      `json:"-"`
	Drop    bool         `json:"drop,omitempty"` // the record of Address goes
	From    spec.Address `json:"from,omitzero"`  // the record of From becomes the one of Address
	// How names the way in which the step was done, such as the way a VM was stopped. In a
	// begin it is Destroying, Deleting, Replacing, LettingGo or empty. In the failure of a step that may
	// have deleted a part of its object it is as in the begin, which stays interrupted.
	How      string   `json:"how,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// Operation names the operation of a Begin, for people: Op, or "destroy" if the step is a part
// of a destruction.
func (e Entry) Operation() string {
	if e.Destroys() {
		return "destroy"
	}
	return e.Op
}

// Destroys reports whether a Begin is of a step of a destruction.
func (e Entry) Destroys() bool { return e.How == Destroying || e.How == Deleting }

// Deletes reports whether a Begin is of a step that deletes the object with ID.
func (e Entry) Deletes() bool { return e.How == Deleting || e.How == Replacing }

// String names the holder for people: `vmctl apply (pid 42 on ada) since
// 2026-03-04 05:06:07 UTC`.
func (h Holder) String() string {
	if h == (Holder{}) {
		return "a process that has not said who it is"
	}
	return fmt.Sprintf("%s (pid %d on %s) since %s", h.Command, h.PID, h.Host, h.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}

// Compare orders holders by Since.
func (h Holder) Compare(other Holder) int {
	return cmp.Or(h.Since.Compare(other.Since), cmp.Compare(h.Host, other.Host), cmp.Compare(h.PID, other.PID))
}
