package cli

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/providers"
)

// target returns the SSH target of a VM, from its provider. The login comes from the files,
// else from the record.
func (a *app) target(v observedAddress) (sshx.Target, error) {
	if v.object == nil {
		return sshx.Target{}, errNoEndpoint
	}
	reacher, ok := v.system.Provider.(providers.Reacher)
	if !ok {
		return sshx.Target{}, fmt.Errorf("a VM of %s has nothing to log into", v.system.Ref)
	}
	values := cty.NilVal
	switch {
	case v.resource != nil:
		values = v.resource.Want
	case v.record != nil:
		values = v.record.Values
	}
	l, err := reacher.Reach(*v.object, values)
	return sshx.Target{
		Address: l.Address, Port: l.Port, User: l.User, IdentityFile: l.IdentityFile,
		Alias: l.Alias, KnownHosts: l.KnownHosts, HostKey: l.HostKey, HostKeyFrom: l.HostKeyFrom, AcceptNew: l.AcceptNew,
	}, err
}
