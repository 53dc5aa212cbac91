package cli

import (
	"context"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/guest"
)

// target returns the SSH target of a VM, from its provider.
func (a *app) target(v observedAddress) (sshx.Target, error) { return a.targetAs(v, v.values()) }

// visitorTarget returns the SSH target of people who enter a VM.
func (a *app) visitorTarget(v observedAddress) (sshx.Target, error) {
	values, _, err := a.visitor(v)
	if err != nil {
		return sshx.Target{}, err
	}
	return a.targetAs(v, values)
}

// targetAs is target with the login that the values say.
func (a *app) targetAs(v observedAddress, values cty.Value) (sshx.Target, error) {
	if v.object == nil {
		return sshx.Target{}, errNoEndpoint
	}
	reacher, ok := providers.Ability[providers.Reacher](v.system.Provider)
	if !ok {
		return sshx.Target{}, fmt.Errorf("a VM of %s has nothing to log into", v.system.Ref)
	}
	l, err := reacher.Reach(*v.object, values)
	return guest.Target(l), err
}

// guest returns the inside of a VM that runs. The caller closes it.
func (a *app) guest(ctx context.Context, v observedAddress) (providers.Guest, error) {
	return a.guestAs(ctx, v, v.values())
}

// guestAs is guest with the login that the values say.
func (a *app) guestAs(ctx context.Context, v observedAddress, values cty.Value) (providers.Guest, error) {
	host, ok := providers.Ability[providers.Host](v.system.Provider)
	if !ok {
		return nil, fmt.Errorf("a VM of %s cannot be entered", v.system.Ref)
	}
	return host.Enter(ctx, *v.object, values)
}

// values returns the attributes with the login to a VM: those of the files, else of the record.
func (v observedAddress) values() cty.Value {
	switch {
	case v.resource != nil:
		return v.resource.Want
	case v.record != nil:
		return v.record.Values
	}
	return cty.NilVal
}

// policy returns how vmctl treats an object: by the files, else by the record.
func (v observedAddress) policy() cty.Value {
	switch {
	case v.resource != nil:
		return v.resource.Policy
	case v.record != nil:
		return v.record.Policy
	}
	return cty.NilVal
}
