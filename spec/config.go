// Package spec reads HCL files into a Config of resources. It is the only decoder of HCL, and
// defines the shape of every block: names, types, required and sensitive attributes, and defaults.
// It imports neither state nor providers, and reads no system.
package spec

import (
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Config holds the content of the spec files of one folder, evaluated as far as possible before
// anything is observed.
type Config struct {
	Dir       string // absolute
	Settings  Settings
	Providers []Provider // the declared ones and the built-in ones that are used, by name
	Resources []Resource // by address
	Moves     []Move     // as they stand in the files
	Removals  []Removal  // as they stand in the files
	Imports   []Import   // as they stand in the files

	// RemovalsUnread says that Inputs.Partial was set and a removed block could not be read.
	RemovalsUnread bool

	evaluator *evaluator
	recorded  map[Address]bool // resources that WithRecorded added
}

// Settings is the vmctl block.
type Settings struct {
	Project     string
	ID          string        // "" until `vmctl init` wrote it
	LockTimeout time.Duration // how long a command waits for the run lock
	ReadTimeout time.Duration // of the reading of one system; 0: its provider's own
	SkipsUnread bool          // what cannot be read is left out, and the rest is carried out
	Range       hcl.Range     // of the vmctl block; zero without one
}

// ProviderRef names a provider block: its type and its label, and the key of an
// instance of a for_each.
type ProviderRef struct {
	Type, Name string
	Key        string `json:",omitempty"` // "" without for_each; a key is never empty
}

// String returns the reference as a spec writes it: provider.libvirt.here, or
// provider.libvirt.host["a"]; this host has no other name.
func (r ProviderRef) String() string {
	if r.IsOnThisHost() {
		return "this host"
	}
	return "provider." + r.Type + "." + r.Label()
}

// Label returns the label of the block with its key: here, or host["a"]. No two providers of one
// type have the same.
func (r ProviderRef) Label() string {
	if r.Key == "" {
		return r.Name
	}
	return r.Name + "[" + strconv.Quote(r.Key) + "]"
}

// HostType is the type of the providers of what is on this host itself. No block declares them.
const HostType = "host"

// OnThisHost returns the provider of the objects of a kind that are on this host itself.
func OnThisHost(kind Kind) ProviderRef { return ProviderRef{Type: HostType, Name: string(kind)} }

// ThisHost is the address that stands for this host where the object around another one is named. No
// resource has it.
var ThisHost = Address{Kind: HostType, Name: "this"} //nolint:gochecknoglobals // a constant

// IsOnThisHost reports whether the provider is one of OnThisHost.
func (r ProviderRef) IsOnThisHost() bool { return r.Type == HostType }

// Block names the block: r without its key.
func (r ProviderRef) Block() ProviderRef { return ProviderRef{Type: r.Type, Name: r.Name} }

// Provider is one instance of a provider block, or a built-in one
// (provider.libvirt.default).
type Provider struct {
	Ref     ProviderRef
	Attrs   cty.Value // every attribute of the type's shape; null where the block is silent; sensitive values are marked
	BuiltIn bool
	Range   hcl.Range
}

// Resource is one instance of a resource block.
type Resource struct {
	Address  Address
	Provider ProviderRef // for a resource inside of another one, that one's
	Inside   Address     // the resource that it is inside of; zero: none
	// Want holds the managed attributes in canonical form: sizes are numbers of bytes, durations
	// are numbers of seconds. Values from a computed attribute of another resource are unknown.
	// Sensitive values are marked (Sensitive, Revealed, Hidden).
	Want cty.Value
	// Plain says that Want is wholly known and holds nothing sensitive; false: it may be otherwise.
	Plain bool
	// Policy holds the attributes that tell vmctl how to treat the object and are no part of it:
	// start, stop, ssh.wait, lifecycle.
	Policy cty.Value
	// Missing lists the means that vmctl lacks to make the object, such as an image that is no
	// readable file. They only keep it from being made.
	Missing []Flaw
	// Unread says that an attribute of Want still names a text elsewhere. nil: none does.
	Unread   *UnreadError
	Uses     []Address // the addresses that it refers to or depends on, sorted; each instance of a for_each
	Takes    []Address // the part of Uses that its attributes refer to; the others only stand in depends_on
	Defaults []Default // attributes of Want and Policy that the block left out, by path
	Range    hcl.Range // of the block's header
}

// WithRead returns r with the attribute that was not read as values have it, if they have it.
func (r Resource) WithRead(values cty.Value) Resource {
	if r.Unread == nil || values == cty.NilVal || values.IsNull() || !values.Type().HasAttribute(r.Unread.Path) {
		return r
	}
	all := r.Want.AsValueMap()
	all[r.Unread.Path] = values.GetAttr(r.Unread.Path)
	r.Want = cty.ObjectVal(all)
	return r
}

// Default is an attribute that a block left out.
type Default struct {
	Path   string // dotted: "stop.grace"
	Value  cty.Value
	Origin string // where the value comes from: "default of vm", "default of root's connection"
}

// Output is one output block, evaluated.
type Output struct {
	Name      string
	Value     cty.Value // unknown where it needs a computed attribute that does not exist yet
	Sensitive bool
	Mistakes  hcl.Diagnostics // why it cannot be evaluated; none: it was
}

// Problem returns one sentence that says why an output cannot be evaluated, "" if it was.
func (o Output) Problem() string {
	for _, d := range o.Mistakes {
		if d.Severity == hcl.DiagError {
			return d.Summary + ": " + d.Detail
		}
	}
	return ""
}
