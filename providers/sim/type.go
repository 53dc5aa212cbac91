// Package sim simulates a host in a folder. Its virtual machines are real processes with pid
// files, sockets and ports, so that stopping, orphans, recycled pids and crashes are real and
// need no hypervisor; the provider block can ask for faults. With host_agent a VM is two
// processes, as in Lima: a driver, and the host agent that supervises it. A weightless VM is a
// record without a process, for many thousands of machines.
package sim

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// TypeName is the type of this provider's blocks.
const TypeName = "sim"

// Host holds the program, the arguments and the environment of the processes that run VMs.
type Host struct {
	// Program is run with Args for each VM, and calls Run with the arguments that follow. It
	// is an absolute path. "": only weightless VMs can be started.
	Program string
	Args    []string
	Env     []string // NAME=value, the whole environment of a VM
	Path    string   // the variable PATH of the commands inside a VM
}

// Type returns the provider type.
func Type(h Host) providers.Type {
	return providers.Type{
		Name:  TypeName,
		Kinds: kinds,
		Check: check,

		Produces:  machine.Produces(),
		NameLimit: nameLimit,

		SharesFiles: true,
		// The folder identifies a host: the same folder with other faults is the same host.
		System: func(name string, attrs cty.Value) cty.Value {
			if folder := ctyread.Text(attrs, "folder"); folder != "" {
				return cty.ObjectVal(map[string]cty.Value{"folder": cty.StringVal(folder)})
			}
			return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
		},
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			p, err := open(h, s)
			if err != nil {
				return nil, err
			}
			return p.withFaults()
		},
	}
}

// Provider is one host.
type Provider struct {
	host       Host
	settings   providers.Settings
	dir        string // of the host: its folder
	shared     bool   // with other data directories, perhaps
	weightless bool   // makes new VMs weightless
	hostAgent  bool   // gives new VMs a host agent
	token      string // of its VMs; "": none
	processes  process.Host

	turning sync.Mutex // held during a turn on a shared host
	writing sync.Mutex // held while a file of the host is written
	imaging sync.Mutex // held while images are copied or dropped

	index index // of the VMs

	mu       sync.Mutex
	children map[providers.ID]*process.Child // started by this process, to be collected
}

var _ providers.Provider = (*Provider)(nil)

func open(h Host, s providers.Settings) (*Provider, error) {
	p := &Provider{host: h, settings: s, dir: s.Dir, weightless: ctyread.True(s.Attrs, "weightless"), hostAgent: ctyread.True(s.Attrs, "host_agent"), token: ctyread.Text(s.Attrs, "token"), children: map[providers.ID]*process.Child{}}
	if folder := ctyread.Text(s.Attrs, "folder"); folder != "" {
		p.dir, p.shared = folder, true
		if !filepath.IsAbs(folder) {
			p.dir = filepath.Join(s.Files, folder)
		}
	}
	if !filepath.IsAbs(p.dir) {
		return nil, fmt.Errorf("provider.%s.%s: its folder %q is not absolute", TypeName, s.Name, p.dir)
	}
	if p.weightless && p.hostAgent {
		return nil, fmt.Errorf("provider.%s.%s: weightless VMs have no processes: set only one of weightless and host_agent", TypeName, s.Name)
	}
	if err := p.newRunner().fits(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close stops watching the host. The VMs that this process started keep running.
func (p *Provider) Close() error {
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	return p.index.close()
}
