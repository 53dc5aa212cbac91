// Package workspace is the provider of workspaces: branches of git repositories of this host, each checked out in a VM
// of any provider, or in a folder of this host. It reaches the inside of a VM by its guest alone, through which it
// also sends and receives commits.
package workspace

import (
	"context"
	"errors"

	"vmctl/providers"
	"vmctl/spec"
)

// Host is this host, with the repositories.
type Host struct {
	Enter func() (providers.Guest, error) // nobody closes it
	Home  string                          // the user's home; "": unknown
	// Environ is the environment of vmctl (NAME=value, all of it), and of programs on this host, but for the variables of specs.
	Environ []string
	// Transport returns the program, with its arguments, that serves the files of the VM around a provider with those settings,
	// by SFTP on its standard streams.
	Transport func(providers.Settings) []string
}

// Type returns the type of the provider of workspaces.
func Type(h Host) providers.Type {
	return providers.Type{
		Name: "workspace", Kinds: kinds,
		Open: func(_ context.Context, s providers.Settings) (providers.Provider, error) {
			if s.Via == nil {
				return nil, errors.New("open the workspaces of an object: it is not said of which")
			}
			return &Provider{host: h, settings: s}, nil
		},
	}
}

// onHost reports whether the workspaces are worktrees of this host.
func (p *Provider) onHost() bool { return p.settings.Via.Address == spec.ThisHost }

// tree returns the word for the git directories of the provider's workspaces.
func (p *Provider) tree() string {
	if p.onHost() {
		return sharedTree
	}
	return ownTree
}
