// Package spec reads HCL files into a Config of resources. It is the only
// decoder of HCL, and it owns the shape of every block: names, types, what is
// required, what is sensitive, and the defaults. It knows nothing of state,
// providers or the real world.
package spec

import (
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Config is what the files of one folder say, evaluated as far as it can be
// before anything is observed.
type Config struct {
	Dir       string // absolute
	Settings  Settings
	Providers []Provider // those declared and the built-in ones that are used, by name
	Resources []Resource // by address
	Moves     []Move     // as they stand in the files
	Removals  []Removal  // as they stand in the files
	Imports   []Import   // as they stand in the files

	// RemovalsLost says that a removed block could not be read: Inputs.Anyway.
	RemovalsLost bool

	evaluator *evaluator
	recorded  map[Address]bool // resources that WithRecorded added
}

// Settings is the vmctl block.
type Settings struct {
	Project     string
	ID          string        // "" until `vmctl init` wrote it
	LockTimeout time.Duration // how long a command waits for the run lock
	Range       hcl.Range     // of the vmctl block; zero without one
}

// ProviderRef names a provider block: its type and its label, and the key of an
// instance of a for_each.
type ProviderRef struct {
	Type, Name string
	Key        string `json:",omitempty"` // "" without for_each; a key is never empty
}

// String returns the reference as a spec writes it: provider.libvirt.here, or
// provider.libvirt.host["a"].
func (r ProviderRef) String() string { return "provider." + r.Type + "." + r.Label() }

// Label is the label of the block with its key: here, or host["a"]. Of one type
// no two have the same.
func (r ProviderRef) Label() string {
	if r.Key == "" {
		return r.Name
	}
	return r.Name + "[" + strconv.Quote(r.Key) + "]"
}

// Block names the block: r without its key.
func (r ProviderRef) Block() ProviderRef { return ProviderRef{Type: r.Type, Name: r.Name} }

// Provider is one instance of a provider block, or a built-in one
// (provider.libvirt.default).
type Provider struct {
	Ref     ProviderRef
	Attrs   cty.Value // every attribute of the type's shape; null where the block is silent
	BuiltIn bool
	Range   hcl.Range
}

// Resource is one instance of a resource block.
type Resource struct {
	Address  Address
	Provider ProviderRef // of what is inside of a VM: the VM's
	Inside   Address     // the VM that it is inside of; zero: none
	// Want holds the managed attributes in canonical form: sizes are numbers of
	// bytes, durations are numbers of seconds. What comes from a computed
	// attribute of another resource is unknown.
	Want cty.Value
	// Policy holds what tells vmctl how to treat the object and is no part of
	// it: start, stop, ssh.wait, lifecycle.
	Policy cty.Value
	// Missing is what making it lacks now, and keeping it does not: an image that
	// is no readable file. It keeps it from being made, and from nothing else.
	Missing  []Flaw
	Uses     []Address // what it refers to or depends on, sorted; for_each instances each
	Takes    []Address // those of Uses that its attributes refer to: of the others it says depends_on alone
	Defaults []Default // attributes of Want and Policy that the block left out, by path
	Range    hcl.Range // of the block's header
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

// Wrong says in one sentence why an output cannot be evaluated, "" if it was.
func (o Output) Wrong() string {
	for _, d := range o.Mistakes {
		if d.Severity == hcl.DiagError {
			return d.Summary + ": " + d.Detail
		}
	}
	return ""
}
