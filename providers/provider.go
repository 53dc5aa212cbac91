// Package providers defines what a provider of virtual machines, disks or
// workspaces is to the planner and the executor, and nothing else: one system,
// observed as a whole, changed in small steps.
//
// A provider never sees the state and never another provider. IDs and earlier
// values reach it by Query and Work, results leave by Result.
package providers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/spec"
)

// Type is a kind of provider. It is data, and exists also where the system's
// library is missing.
type Type struct {
	Name string
	// Kinds lists, by attribute path ("memory", "boot.kernel", or "boot" for all
	// below it), what each kind of resource supports. What is not listed is a
	// diagnostic at its line.
	Kinds map[spec.Kind]map[string]Attribute
	// Check says what the type could never make of a want, beyond attributes that
	// it does not support; unknown values pass. It connects to nothing. nil: all is well.
	Check func(kind spec.Kind, want cty.Value) []spec.Flaw
	// NameLimit is how many bytes the name of an object has at most, so that files can
	// be named after it. 0: any number.
	NameLimit int
	// Resolve fills what a provider block left out with what holds on this
	// machine for this user. It connects to nothing.
	Resolve func(attrs cty.Value) cty.Value
	// System says what of a provider block, resolved, decides which system it is
	// of: blocks for which it is equal are one system, whatever else they say.
	// nil: all of its attributes, whatever its name.
	System func(name string, attrs cty.Value) cty.Value
	Open   func(context.Context, Settings) (Provider, error)
	// Inside is what a VM of this type holds that can be managed by itself. It is
	// opened once per VM, with Settings.Via. nil: nothing.
	Inside *Type
}

// Attribute is what a provider type knows about one attribute.
type Attribute struct {
	Computed bool // set by the system, never compared
	// Lasts is what a computed attribute will be once the object was restarted as
	// wanted, as far as that is known before; now is what it is. nil: nothing is known.
	Lasts func(now, want cty.Value) cty.Value
	// Judge says how an edit applies to an object that is running or not.
	// nil: by replacing the object.
	Judge func(before, after cty.Value, running bool) Verdict
}

// Verdict says how an edit applies, and why.
type Verdict struct {
	Applies Applies
	Reason  string
}

// Settings is what a provider is opened with.
type Settings struct {
	Name    string    // of the provider block
	Attrs   cty.Value // the provider block, resolved
	Dir     string    // this provider's own folder in the data directory, 0700; made on first use
	Keys    string    // the folder of the keys that vmctl made, 0700; made on first use
	Files   string    // the spec's folder, against which relative paths in attributes are read
	Project Project
	// Via is the VM, as it was observed, whose inside is opened: it runs. nil: the
	// system itself.
	Via *Object
	Now func() time.Time
}

// Project is whose objects are ours.
type Project struct {
	Name string
	ID   string // the lineage: written once by init, part of every owner mark
	Env  string // "" but for a second instance of the same files (--env)
	// Seat tells data directories of one project apart: what they make has different IDs.
	// "": nobody asks.
	Seat string
}

// Lineage is the ID that owner marks carry: ID, or ID-Env.
func (p Project) Lineage() string {
	if p.Env == "" {
		return p.ID
	}
	return p.ID + "-" + p.Env
}

// Provider manages the objects of one system: one libvirt connection, one Lima
// home, one engine. Its methods may be called from several goroutines.
type Provider interface {
	// Observe reads the system and writes nothing. What cannot be read is in the
	// Inventory as unknown or partial; an error means a bug or an ended context.
	Observe(ctx context.Context, q Query) (Inventory, error)
	// Steps says how c is made. It is pure: it connects to nothing. A *Refusal says
	// that c cannot be made as the object is now; any other error ends the plan.
	Steps(c Change) ([]Step, error)
	// Do compares the object with w.Expect, acts and confirms. Doing again what
	// is done already succeeds and says so. Its error is a *Failure.
	Do(ctx context.Context, w Work, log Log) (Result, error)
	Close() error
}

// Refusal is why a change cannot be made as its object is now. The plan blocks
// that change alone.
type Refusal struct {
	Reason string
	Next   []string // what to type or write, a line each
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Query is what Observe is asked for, beyond all that bears our mark.
type Query struct{ Known []Known }

// Known is one address of the spec or the state.
type Known struct {
	Address     spec.Address
	Kind        spec.Kind
	ID          ID        // of the record; "" without one
	Name        string    // of the record, or the one that would be chosen
	Prior, Want cty.Value // cty.NilVal where there is none
	// Import is what the user calls the object that is to become this address's: by
	// the system's own name, its path or its ID. "": none is.
	Import ID
}

// ID is a system's own identity of an object, such as a domain's UUID.
type ID string

// Inventory is what was observed, sorted by kind and name.
type Inventory struct {
	Objects []Object             // every Known that exists, all that bear our mark, all holders of claims
	Unknown []Unknown            // objects that could not be read
	Partial map[spec.Kind]string // kinds whose listing is incomplete, and why; no key: complete
	Missing map[spec.Kind]string // what the host lacks to make or start a kind, and what to type; no key: nothing
	// Found says which object each Known.Import is the name of; no key: nothing that
	// exists has that name. The object is among Objects or Unknown, unmarked or not.
	Found map[spec.Address]ID
	Host  map[string]string // facts of the host for doctor and status: versions, accelerators
}

// Unknown is an object that may exist and could not be read.
type Unknown struct {
	Kind   spec.Kind
	ID     ID
	Name   string
	Reason string
}

// Object is one thing that exists.
type Object struct {
	Kind  spec.Kind
	ID    ID
	Name  string
	Owner *Mark // nil: bears no mark of vmctl
	// Running is nil where the kind does not run or the state could not be read
	// (then Unreadable["running"] says why).
	Running *bool
	// State is the system's own word for the run state: "running", "paused".
	State string
	// Attrs holds what was read: configured attributes by the names of the spec,
	// and computed ones. What the system does not show is absent. Of what runs, they
	// are what the next start will use.
	Attrs cty.Value
	// Live holds those attributes of Attrs that the running object has otherwise; NilVal: none.
	Live       cty.Value
	Unreadable map[string]string // attribute path -> reason
	Holds      []Claim
	Findings   []Finding
	// Fingerprint is equal as long as nothing that a step relies on has changed:
	// identity, mark, run state, claims, managed attributes.
	// It leaves out the IDs of other objects: one that is imported meanwhile may get
	// another.
	Fingerprint string
}

// Now is Attrs with what the running object has in their place.
func (o Object) Now() cty.Value {
	if o.Live == cty.NilVal {
		return o.Attrs
	}
	all := o.Attrs.AsValueMap()
	maps.Copy(all, o.Live.AsValueMap())
	return cty.ObjectVal(all)
}

// LiveOf is Live of an object that runs with some of these attributes and is configured
// with others. What only one of the two shows does not count.
func LiveOf(configured, running map[string]cty.Value) cty.Value {
	live := map[string]cty.Value{}
	for name, v := range running {
		if now, shown := configured[name]; shown && !now.RawEquals(v) {
			live[name] = v
		}
	}
	if len(live) == 0 {
		return cty.NilVal
	}
	return cty.ObjectVal(live)
}

// Mark is the owner mark that an object carries.
type Mark struct {
	ID         string // the lineage of the project
	Project    string
	Address    spec.Address
	Of         ID // the object it was written for; another one is a copy
	Generation uint64
	HostKey    string // that a VM's guest shows over SSH, as authorized_keys has it; "": not known
}

// Finding is what was noticed, with its evidence in words.
type Finding struct {
	Kind     FindingKind
	Address  spec.Address // zero: of no resource
	Object   string       // the object's name
	Claim    Claim
	Evidence []string
	Action   string // what the plan does about it, or what to type
}

// Change is what will happen to one address.
type Change struct {
	Address     spec.Address
	Kind        spec.Kind
	Action      Action
	Reason      string
	Name        string    // the object's name, chosen for what will be made
	ID          ID        // the object's ID; for what will be made, chosen before where the system allows
	Object      *Object   // nil: absent
	Prior, Want cty.Value // record; spec (may hold unknowns). cty.NilVal where there is none
	// Uses is what Want refers to, with the IDs and names that were chosen for what is
	// not made yet.
	Uses       map[spec.Address]Used
	Edits      []Edit
	Policy     cty.Value      // start, stop, ssh.wait …
	Generation uint64         // that the mark will carry
	Replaced   int            // how often the address was replaced, this change included
	Was        []spec.Address // what the mark of the object may name, beside Address
	// Yields are the claims of the object that other changes take. Steps frees each that
	// the object does not keep by a step that sinks.
	Yields []Claim
	// Awaits are the claims that the change takes once other changes have freed them.
	Awaits []Claim
	// Unready: it runs, is to run, and was not seen ready since it was started, though
	// its policy waits for that.
	Unready bool
}

// Used is a resource that another one uses.
type Used struct {
	Kind spec.Kind
	ID   ID     // of its object; what will be made has the one that was chosen for it
	Name string // of its object
}

// Edit is one difference of one attribute.
type Edit struct {
	Path          string
	Before, After cty.Value // NilVal or null where absent; After may be unknown
	Verdict       Verdict
}

// MarkPath is the path of the edit that writes the owner mark: of what is imported, was
// moved, or lost its mark. No spec has it.
const MarkPath = "mark"

// WritesMark reports whether a change writes the owner mark of an object that exists.
func (c Change) WritesMark() bool {
	return c.Object != nil && slices.ContainsFunc(c.Edits, func(e Edit) bool { return e.Path == MarkPath })
}

// KeysPath is the path of the edit that gives a VM's guest other keys. No spec has it. A
// provider that makes no keys does not know it.
const KeysPath = "ssh.keys"

// Step is one call to one provider. It is pure data: no secret, no unknown.
type Step struct {
	Op      string
	Phase   Phase
	Address spec.Address
	Object  ID
	Name    string
	Args    map[string]string
	Class   Class
	Risk    Risk
	Timeout time.Duration
	Frees   []Claim
	Takes   []Claim
	Leaves  []string // what it may leave behind when interrupted, in words
	After   []int    // indices of steps of the same change
}

// Work is a Step and what only apply time knows.
type Work struct {
	Step
	Expect      string                // fingerprint of the object; "": it must be absent
	Prior, Want cty.Value             // wholly known
	Uses        map[spec.Address]Used // what Want refers to, as it is now
	Policy      cty.Value
	Generation  uint64
	Replaced    int
	Was         []spec.Address // what the mark of the object may name, beside Address
	// Halt is closed when no further change begins, as after the first Ctrl-C. A step ends
	// safely all the same; nil: never.
	Halt <-chan struct{}
}

// ErrHalted is why a context of UntilHalt ended.
var ErrHalted = errors.New("interrupted")

// UntilHalt returns a context that ends with ctx, and when no further change begins: for
// what a later run goes on with where this one stopped. Call stop when it is over.
func (w Work) UntilHalt(ctx context.Context) (until context.Context, stop func()) {
	until, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-w.Halt:
			cancel(ErrHalted)
		case <-until.Done():
		}
	}()
	return until, func() { cancel(nil) }
}

// Bears reports whether a mark that names a is the one of this work's object: of
// its address, or of one that it had before it was moved.
func (w Work) Bears(a spec.Address) bool { return a == w.Address || slices.Contains(w.Was, a) }

// Result is what a step came to.
type Result struct {
	ID          ID        // of the object, as the record will have it; "": the one of the step
	Values      cty.Value // computed attributes that became known; NilVal: none
	Gone        bool      // the object no longer exists
	Running     *bool     // the run state that was confirmed; nil: the step does not concern it
	Fingerprint string    // of the object afterwards; "" when Gone
	How         How
	Evidence    []string
}

// Progress is one line about a step under way.
type Progress struct{ Text string }

// Log receives progress. It may be called from any goroutine of the step and
// never blocks for long.
type Log func(Progress)
