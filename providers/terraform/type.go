// Package terraform makes virtual machines by the user's own Terraform or OpenTofu module, so that they live on
// any cloud: one workspace of the module for each. The workspace is the object that vmctl manages; its name
// carries the lineage of the project, the address and the ID. Only Terraform knows the resources in it.
//
// The package runs what plans, and what writes a state, through internal/run; the latter outlives vmctl. Everything else runs through
// terraform-exec, which starts vmctl itself (Call): that sets what terraform-exec refuses to set.
package terraform

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/scratch"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// TypeName is the type of this provider's blocks.
const TypeName = "terraform"

// Host holds the provider's view of its process and its machine.
type Host struct {
	// Program is vmctl, absolute: with CallVariable in its environment it runs Call. "": Terraform cannot be run.
	Program string
	Environ []string // NAME=value: of vmctl; Terraform gets most of it
	Dir     string   // the working directory, absolute
	Temp    string   // the folder of short-lived private files; "": the system's
}

// Type returns the provider type.
func Type(h Host) providers.Type {
	return providers.Type{
		Name:     TypeName,
		Kinds:    kinds,
		Check:    check,
		Produces: machine.Produces(),
		// The states of a module without a backend lie in the provider's own folder, which has its name.
		System: func(name string, _ cty.Value) cty.Value {
			return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
		},
		Open: func(ctx context.Context, s providers.Settings) (providers.Provider, error) {
			p := open(h, s)
			p.sweep(ctx)
			return p, nil
		},
	}
}

// Provider is one module.
type Provider struct {
	host     Host
	settings providers.Settings
	module   string // its folder, absolute
	binary   string // as the spec names it
	shared   shared
	backend  backendConfig
	// lockTimeout limits the wait for Terraform's lock of a state, in whole seconds. 0: no wait.
	lockTimeout time.Duration

	modules spec.TerraformModules // what is in module

	preparing sync.Mutex // held during an init

	scratching sync.Mutex      // guards what follows
	folder     *scratch.Folder // with the folders of the sessions; nil: there was no session yet
	sessions   int

	listing sync.Mutex          // guards listers
	listers map[string]*session // by the Setup of the module: the init of each is that of all sessions that use it

	recalling sync.Mutex // guards observed
	observed  *recalledStates

	asking sync.Mutex // guards what follows
	asked  told
	idle   []*tfexec.Terraform // of sessions that are closed: each knows the version
}

var (
	_ providers.Provider  = (*Provider)(nil)
	_ providers.Previewer = (*Provider)(nil)
)

func open(h Host, s providers.Settings) *Provider {
	p := &Provider{host: h, settings: s, module: ctyread.Text(s.Attrs, "dir"), binary: ctyread.Text(s.Attrs, "binary"), shared: sharedOf(s.Attrs)}
	p.backend = backendConfigOf(s)
	p.lockTimeout = ctyread.Seconds(s.Attrs, "lock_timeout", 0)
	if !filepath.IsAbs(p.module) {
		p.module = filepath.Join(s.Files, p.module)
	}
	if p.binary == "" {
		p.binary = TypeName
	}
	return p
}

// Close removes the temporary files. Terraform runs beyond a step only if vmctl is killed.
func (p *Provider) Close() error {
	p.listing.Lock()
	defer p.listing.Unlock()
	var err error
	for _, s := range p.listers {
		err = errors.Join(err, s.close())
	}
	p.listers = nil
	return errors.Join(err, p.removeFolder())
}
