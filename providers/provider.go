// Package providers defines the interface through which the planner and the executor see a
// provider of virtual machines, disks or workspaces: one system, observed as a whole, changed
// in small steps.
//
// A provider never sees the state and never another provider. It gets IDs and earlier values
// in Query and Work, and returns results in Result.
package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/condition"
	"vmctl/spec"
)

// Type describes a kind of provider. It is data, and exists also where the system's library
// is missing.
type Type struct {
	Name string
	// Kinds lists, by attribute path ("memory", "boot.kernel", or "boot" for all below it),
	// the supported attributes of each kind of resource. An attribute that is not listed is a
	// diagnostic at its line.
	Kinds map[spec.Kind]map[string]Attribute
	// Produces lists, for each kind, the conditions of its shape that steps of this type report. No wait
	// is for another one: it is not applicable.
	Produces map[spec.Kind][]string
	// Check returns the flaws of a want that the type could never make, beyond attributes
	// that it does not support; unknown values pass. It connects to nothing. nil: there are
	// none.
	Check func(kind spec.Kind, want cty.Value) []spec.Flaw
	// Expand returns a want with what it names elsewhere in its place, such as the text of a template, or a flaw
	// if that cannot be had. Relative paths begin in dir, the folder of the spec. It may read from the network.
	// nil: a want says everything itself.
	Expand func(ctx context.Context, kind spec.Kind, want cty.Value, dir string) (cty.Value, *spec.Flaw)
	// Elsewhere returns the attribute of a want whose text Expand would read; "": none. It reads nothing. nil if Expand is.
	Elsewhere func(kind spec.Kind, want cty.Value) string
	// NameLimit is the length of the longest name of an object (bytes), so that files can be
	// named after it. 0: no limit.
	NameLimit int
	// Resolve fills in the missing attributes of a provider block for this machine and this
	// user. It connects to nothing.
	Resolve func(attrs cty.Value) cty.Value
	// System returns the part of a resolved provider block that identifies its system: two
	// blocks with equal parts are one system, whatever else they say. nil: all of its
	// attributes, whatever its name.
	System func(name string, attrs cty.Value) cty.Value
	Open   func(context.Context, Settings) (Provider, error)
	// ForwardsToLoopback says that a forwarded port leads to what listens on the loopback of the guest, too.
	ForwardsToLoopback bool
	// Rekey decides how the guest of a VM that is running or not gets other keys. nil: the type
	// makes no keys.
	Rekey func(running bool) Verdict
}

// Attribute describes one attribute of a provider type.
type Attribute struct {
	Computed bool // set by the system, never compared
	// Lasts predicts the value of a computed attribute after a restart of the object as
	// wanted, as far as it is known before; now is the present value. nil: nothing is known.
	Lasts func(now, want cty.Value) cty.Value
	// Judge decides how an edit applies to an object that is running or not. nil: by
	// replacing the object.
	Judge func(before, after cty.Value, running bool) Verdict
	// Optional says that a null in the spec accepts the value that the object has.
	Optional bool
	// StaysUp says that no edit takes the object down, whatever the value.
	StaysUp bool
}

// Verdict is the decision how an edit applies, with the reason.
type Verdict struct {
	Applies Applies
	Reason  string
}

// Settings holds the settings of a provider that is opened.
type Settings struct {
	Name    string    // of the provider block
	Attrs   cty.Value // the provider block, resolved
	Dir     string    // this provider's own folder in the data directory, 0700; made on first use
	Keys    string    // the folder of the keys that vmctl made, 0700; made on first use
	Logs    string    // the folder of the logs of VMs that are kept, 0700; made on first use; "": none are kept
	Files   string    // the spec's folder, against which relative paths in attributes are read
	Read    []string  // the absolute paths of the files that the spec reads, and of the folders of its modules
	Project Project
	// Via leads to the object in which the provider manages others. nil: the provider manages a
	// system of its own.
	Via *Via
	// Digest returns a digest of a text that may have secrets in it, made with a key of the data directory:
	// nobody else can find out the text by trying. Anything that others can see, such as a name or a
	// fingerprint, has this in place of a plain digest. nil: there is no key, and nothing leaves the process.
	Digest func(text string) string
	Now    func() time.Time
}

// Project identifies the project that owns the objects.
type Project struct {
	Name string
	ID   string // the lineage: written once by init, part of every owner mark
	Env  string // "" but for a second instance of the same files (--env)
	// DataDirID identifies one of the data directories of a project: objects that they make have
	// different IDs. "": not known.
	DataDirID string
}

// Lineage returns the ID that owner marks carry: ID, or ID-Env.
func (p Project) Lineage() string {
	if p.Env == "" {
		return p.ID
	}
	return p.ID + "-" + p.Env
}

// MarkOf returns the owner mark of an object whose record is the ownership: it counts no generations.
func (p Project) MarkOf(a spec.Address, id ID) *Mark {
	return &Mark{ID: p.Lineage(), Project: p.Name, Address: a, Of: id}
}

// Provider manages the objects of one system: one libvirt connection, one Lima
// home, one engine. Its methods may be called from several goroutines.
type Provider interface {
	// Observe reads the system and writes nothing. An object that cannot be read is in the
	// Inventory as unknown, an incomplete listing as partial; an error means a bug or an
	// ended context.
	Observe(ctx context.Context, q Query) (Inventory, error)
	// Steps returns the steps that make c. It is pure: it connects to nothing. It returns a
	// *Problem if c cannot be made as the object is now. The plan blocks that change alone.
	Steps(c Change) ([]Step, error)
	// Do compares the object with w.Expect, acts and confirms. If the step is done already,
	// it succeeds and says so. Its error is a *Problem.
	Do(ctx context.Context, w Work, log Log) (Result, error)
	Close() error
}

// Query lists the addresses that Observe looks up, in addition to the objects that bear our
// mark.
type Query struct{ Known []Known }

// Known is one address of the spec or the state.
type Known struct {
	Address     spec.Address
	Kind        spec.Kind
	ID          ID        // of the record; "" without one
	Name        string    // of the record, or as it would be chosen
	Prior, Want cty.Value // cty.NilVal where there is none
	Policy      cty.Value // of the spec; cty.NilVal: it is not in the spec
	// Kept says that a record of the object tells that it was made, and that no run which was cut short was at it: if it is
	// not there, vmctl did not remove it.
	Kept bool
	// Import is the user's name for the object to import at this address: the system's own
	// name, its path or its ID. "": there is none.
	Import ID
}

// ID is a system's own identity of an object, such as a domain's UUID.
type ID string

// Inventory holds the observed objects, sorted by kind and name.
type Inventory struct {
	Objects []Object               // every Known that exists, all that bear our mark, all holders of claims
	Unknown []Unknown              // objects that could not be read
	Partial map[spec.Kind]*Problem // kinds whose listing is incomplete, and why; no key: complete
	Missing map[spec.Kind]*Problem // software that the host lacks to make or start a kind; no key: none
	// Found maps the address of each Known.Import to the object of that name; no key: no
	// object has it. The object is among Objects or Unknown, marked or not.
	Found map[spec.Address]ID
	Host  map[string]string // facts of the host for doctor and status: versions, accelerators
	// Booted is the moment at which the host was booted, by its clock; zero: not known.
	Booted time.Time
	Blind  *Problem // why the facts of the host could not be read; nil: they were
	// Subnets lists the IPv4 networks that the host is in, those of its own networks for VMs aside. Empty: it is in none, or they
	// cannot be told.
	Subnets []netip.Prefix
	// Capacity holds the processors and the memory of the host.
	Capacity Capacity
}

// Capacity is the hardware of a host for virtual machines. What is 0 is not known.
type Capacity struct {
	CPUs   uint64
	Memory uint64 // bytes
}

// FindImports notes in Found the listed objects whose name or ID an import has.
func (inv *Inventory) FindImports(q Query) {
	for _, k := range q.Known {
		for _, o := range inv.Objects {
			if k.Import != "" && o.Kind == k.Kind && (string(k.Import) == o.Name || k.Import == o.ID) {
				inv.Found[k.Address] = o.ID
			}
		}
	}
}

// Unknown is an object that may exist and could not be read.
type Unknown struct {
	Kind   spec.Kind
	ID     ID
	Name   string
	Reason string
	Next   []Advice // what the user can do about it
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
	// State is the run state as one of the State constants, or in the system's own word:
	// "running", "paused".
	State string
	// Attrs holds the attributes that were read: configured ones by the names of the spec,
	// and computed ones. An attribute that the system does not show is absent. For a running
	// object they are the values for the next start.
	Attrs cty.Value
	// Live holds the attributes whose value in the running object differs from Attrs; NilVal:
	// none.
	Live       cty.Value
	// Unreadable has the reason for each attribute path that could not be read. "addresses" of a network stands for the addresses
	// in use in it: one that none of the listed objects holds may be in use all the same.
	Unreadable map[string]string
	Holds      []Claim
	// HoldsUp has further claims, which the object holds until it goes down: the host ports
	// that the kernel chose.
	HoldsUp  []Claim
	Findings []Finding
	// Dirty lists the work in the object that exists nowhere else: it would be lost with the object. If it could
	// not be read, Unreadable["dirty"] says why.
	Dirty []Dirt
	// Due lists what the block of the object lets an apply do with it though it is as wanted, in the order in which it is
	// to be done. It is judged by Known.Policy.
	Due []Due
	// Edits lists what an apply is to change although the block says the same, as the system found: a name of an image
	// that leads to another content in its registry by now. Their paths are those of computed attributes.
	Edits []Edit
	// Volatile says that everything inside of the object is lost when it goes down: its root is in memory.
	Volatile bool
	// Protected is the reason why the system lets nobody remove the object; "": it would.
	Protected string
	// Fingerprint stays equal as long as nothing changes that a step relies on: identity,
	// mark, run state, claims, managed attributes. It leaves out the IDs of other objects: an
	// object that is imported meanwhile may get another ID.
	Fingerprint string
}

// Dirt is one sort of work that exists nowhere else.
type Dirt struct {
	Sort  string   // in words: "untracked files"
	Items []string // names, in the order in which people read them
}

// Due is one thing that an apply does with an object which is otherwise as wanted.
type Due struct {
	Op     string // of its step
	Reason string // why it is to be done, in words
	Access bool   // without it the user cannot get at what is there: a command that brings the object up does it, too
}

// String names the sort and the first items.
func (d Dirt) String() string {
	const most = 5
	items := d.Items
	more := ""
	if len(items) > most {
		items, more = items[:most], fmt.Sprintf(" and %d more", len(items)-most)
	}
	return d.Sort + ": " + strings.Join(items, ", ") + more
}

// Now returns Attrs with the values of Live in their place.
func (o Object) Now() cty.Value {
	if o.Live == cty.NilVal {
		return o.Attrs
	}
	all := o.Attrs.AsValueMap()
	maps.Copy(all, o.Live.AsValueMap())
	return cty.ObjectVal(all)
}

// LiveOf returns Live of an object that is configured with some attributes and runs with
// others. An attribute that only one of the two has does not count.
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
	Of         ID // the object that the mark was written for; any other object with it is a copy
	Generation uint64
	HostKey    string // SSH host key of a VM's guest, as a line of authorized_keys; "": not known
}

// Finding describes one observation about an object, with its evidence in words.
type Finding struct {
	Kind     FindingKind
	Address  spec.Address // zero: of no resource
	Object   string       // the object's name
	Claim    Claim
	Attr     string // the path of the attribute that it is about; "": of none
	Evidence []string
	Action   string   // what the plan does about it, in words
	Next     []Advice // what the user can do about it
}

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

// Words are the words for a step: as it runs ("starting"), and once it is done ("started").
type Words struct{ Doing, Done string }

// Step is one call to one provider. It is pure data: no secret, no unknown.
type Step struct {
	Op      string
	Words   Words // empty: Op tells enough
	Phase   Phase
	Address spec.Address
	Object  ID
	Name    string
	Imports bool // the object gets its first mark: the step may act on it while it bears none
	Args    Args // nil: none
	// Condition is the condition that the step waits for, in PhaseReady; "": none. It is true once the
	// step has ended well.
	Condition string
	// Provision is the name of the script that the step runs in the object; "": it runs none.
	Provision string
	AtStart   bool // skip the step if the object does not start
	// Saves says that the step saves the work that exists only in the object, and fails unless all of it is saved: the steps
	// after it may remove the object.
	Saves   bool
	Checks  bool // the step fails if there is work that exists only in the object
	Fresh   bool // no run of the script is known to have begun: an earlier one in the object does not count
	Class   Class
	Risk    Risk
	Timeout time.Duration
	Frees   []Claim
	Takes   []Claim
	Leaves  []string // remains that an interruption may leave, in words
	After   []int    // indices of steps of the same change
}

// Args holds the arguments of a step that only its provider reads.
type Args interface {
	// Words returns the name and the value of each argument, for a detailed plan.
	Words() [][2]string
}

// Work is a Step with the facts that are only known at apply time.
type Work struct {
	Step
	Expect      string                // fingerprint of the object; "": it must be absent
	Prior, Want cty.Value             // wholly known
	Uses        map[spec.Address]Used // the resources that Want refers to, as they are now
	Policy      cty.Value
	Generation  uint64
	Replaced    int
	Starts      int            // how often vmctl has started the object
	Digest      string         // of the script of Provision and its variables
	Was         []spec.Address // earlier addresses that the mark of the object may name
	KeepLogs    bool           // the logs of an object that is removed are kept
	// Mask replaces the secrets in a text that is kept. nil: there are none.
	Mask func(text string) string
	// Halt is closed when no further change begins, for example after the first Ctrl-C. A
	// step still ends safely; nil: never closed.
	Halt <-chan struct{}
}

// ErrHalted is the cause of the end of a context of UntilHalt.
var ErrHalted = errors.New("interrupted")

// UntilHalt returns a context that ends with ctx, or when no further change begins. It is for
// work that a later run can continue. Call stop when the work is over.
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

// Bears reports whether a mark that names a belongs to this work's object: a is its address,
// or an earlier one.
func (w Work) Bears(a spec.Address) bool { return a == w.Address || slices.Contains(w.Was, a) }

// Result holds the outcome of a step.
type Result struct {
	ID          ID        // of the object, for the record; "": the step's own
	Values      cty.Value // computed attributes that became known; NilVal: none
	Gone        bool      // the object no longer exists
	Running     *bool     // the run state that was confirmed; nil: the step does not concern it
	Fingerprint string    // of the object afterwards; "" when Gone
	How         How
	Evidence    []string
	Digest      string // of a step with a script: that of the script that ran (Work.Digest); "": the step's own
	// Conditions are further reports about conditions that the type produces, as the step found them for
	// the spec that it was given.
	Conditions []condition.Report
}

// Progress is one line of text about a running step, or a report about a condition.
type Progress struct {
	Text string
	// Condition is recorded at once, so that others see it while the step runs on. If the step waits for
	// this condition, a report that ends a wait ends the step: its context is cancelled. nil: no report.
	Condition *condition.Report
}

// Log receives progress. It may be called from any goroutine of the step and
// never blocks for long.
type Log func(Progress)
