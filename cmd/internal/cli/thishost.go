package cli

import (
	"context"
	"errors"

	"vmctl/internal/procenv"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/workspace"
	"vmctl/spec"
)

// thisHost returns the way of a provider of what is on this host to the host itself, as the user of
// vmctl sees it.
func (a *app) thisHost() *providers.Via {
	return &providers.Via{
		Address: spec.ThisHost,
		Object: func(context.Context) (providers.Object, error) {
			running := true
			return providers.Object{Kind: spec.ThisHost.Kind, ID: "this", Name: "this host", Running: &running, State: providers.StateRunning}, nil
		},
		Enter: func(context.Context) (providers.Guest, error) { return onThisHost(a.env) },
	}
}

// workspaceHost returns this host, with the repositories of workspaces.
func workspaceHost(env Env) workspace.Host {
	return workspace.Host{Home: env.Getenv("HOME"), Environ: env.Environ, Enter: func() (providers.Guest, error) { return onThisHost(env) }}
}

// onThisHost returns the inside of this host. No program there gets the variables of specs by itself. Nobody has to close it.
func onThisHost(env Env) (providers.Guest, error) {
	home := env.Getenv("HOME")
	if home == "" {
		return nil, errors.New("use this host: HOME is not set")
	}
	return guest.OnHost(home, procenv.WithoutVariables(env.Environ)), nil
}
