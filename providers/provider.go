// Package providers defines the interface through which the planner and the executor see a
// provider of virtual machines, disks or workspaces: one system, observed as a whole, changed
// in small steps.
//
// A provider never sees the state and never another provider. It gets IDs and earlier values
// in Query and Work, and returns results in Result.
package providers

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

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
	// SharesFiles says that the insides of its VMs have the file system of this host: a path is the same folder in all of them.
	SharesFiles bool
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
	// Unordered says that the blocks mean the same in any order.
	Unordered bool
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
	Live cty.Value
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
	// Spent is the reason why the object never runs again, so that only another one in its place can; "": it can.
	Spent string
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
