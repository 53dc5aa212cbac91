// Package spec reads HCL files into a Config of resources. It is the only
// decoder of HCL, and it owns the shape of every block: names, types, what is
// required, what is sensitive, and the defaults. It knows nothing of state,
// providers or the real world.
package spec

import (
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

	evaluator *evaluator
}

// Settings is the vmctl block.
type Settings struct {
	Project     string
	ID          string        // "" until `vmctl init` wrote it
	LockTimeout time.Duration // how long a command waits for the run lock
	Range       hcl.Range     // of the vmctl block; zero without one
}

// ProviderRef names a provider block: its type and its label.
type ProviderRef struct{ Type, Name string }

// String returns the reference as a spec writes it, provider.libvirt.here.
func (r ProviderRef) String() string { return "provider." + r.Type + "." + r.Name }

// Provider is one provider block, or a built-in one (provider.libvirt.default).
type Provider struct {
	Ref     ProviderRef
	Attrs   cty.Value // every attribute of the type's shape; null where the block is silent
	BuiltIn bool
	Range   hcl.Range
}

// Resource is one instance of a resource block.
type Resource struct {
	Address  Address
	Provider ProviderRef
	// Want holds the managed attributes in canonical form: sizes are numbers of
	// bytes, durations are numbers of seconds. What comes from a computed
	// attribute of another resource is unknown.
	Want cty.Value
	// Policy holds what tells vmctl how to treat the object and is no part of
	// it: start, stop, ssh.wait, lifecycle.
	Policy   cty.Value
	Uses     []Address // what it refers to or depends on, sorted; for_each instances each
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
}
