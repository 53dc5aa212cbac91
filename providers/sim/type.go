// Package sim is a host in a folder. Its virtual machines are real processes
// with pid files, sockets and ports, so that stopping, orphans, recycled pids and
// crashes are real and need no hypervisor; faults are had by asking for them. A
// weightless one is a record without a process, for many thousands of machines.
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
)

// TypeName is the type of this provider's blocks.
const TypeName = "sim"

// Host is what the provider takes from the process that it runs in.
type Host struct {
	// Program is run with Args for each VM, and calls Run with the arguments that
	// follow. It is absolute. "": only weightless VMs can be started.
	Program string
	Args    []string
	Env     []string // NAME=value, all that a VM gets
}

// Type returns the provider type.
func Type(h Host) providers.Type {
	return providers.Type{
		Name:  TypeName,
		Kinds: kinds,
		Check: check,

		NameLimit: nameLimit,
		// A host is its folder: another fault is no other host.
		System: func(name string, attrs cty.Value) cty.Value {
			if folder := ctyread.Text(attrs, "folder"); folder != "" {
				return cty.ObjectVal(map[string]cty.Value{"folder": cty.StringVal(folder)})
			}
			return cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
		},
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) { return open(h, s) },
		Inside: &providers.Type{
			Name: TypeName, Kinds: insideKinds,
			Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) { return openGuest(h, s) },
		},
	}
}

// Provider is one host.
type Provider struct {
	host       Host
	settings   providers.Settings
	dir        string // of the host: its folder
	shared     bool   // with other data directories, perhaps
	weightless bool   // VMs that are made from now on
	faults     []fault
	processes  process.Host

	turning sync.Mutex // one at a time takes its turn on a shared host
	writing sync.Mutex // one at a time writes a file of the host
	imaging sync.Mutex // one at a time copies or drops images

	mu       sync.Mutex
	children map[providers.ID]*process.Child // started by this process, to be collected
}

var _ providers.Provider = (*Provider)(nil)

func open(h Host, s providers.Settings) (*Provider, error) {
	p := &Provider{host: h, settings: s, dir: s.Dir, weightless: ctyread.True(s.Attrs, "weightless"), children: map[providers.ID]*process.Child{}}
	if folder := ctyread.Text(s.Attrs, "folder"); folder != "" {
		p.dir, p.shared = folder, true
		if !filepath.IsAbs(folder) {
			p.dir = filepath.Join(s.Files, folder)
		}
	}
	var err error
	if p.faults, err = faultsOf(ctyread.Attr(s.Attrs, "fault")); err != nil {
		return nil, fmt.Errorf("provider.%s.%s: %w", TypeName, s.Name, err)
	}
	if !filepath.IsAbs(p.dir) {
		return nil, fmt.Errorf("provider.%s.%s: its folder %q is not absolute", TypeName, s.Name, p.dir)
	}
	if longest := len(p.socket("")); !p.weightless && longest > socketLimit {
		return nil, fmt.Errorf("provider.%s.%s: the folder %s is too long for the sockets inside: they would have names of %d bytes, and the system allows %d: "+
			"choose a shorter data directory (--data-dir=DIR) or folder, or set weightless = true", TypeName, s.Name, p.dir, longest, socketLimit)
	}
	return p, nil
}

// Close leaves the VMs that this process started running.
func (p *Provider) Close() error { return nil }
