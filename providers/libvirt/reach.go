package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/machine"
)

var (
	_ providers.Reacher = (*Provider)(nil)
	_ providers.Host    = (*Provider)(nil)
)

// Enter implements providers.Host.
func (p *Provider) Enter(_ context.Context, o providers.Object, values cty.Value) (providers.Guest, error) {
	return guest.Enter(p, o, values)
}

// Reach returns the SSH login to a VM, through the port that QEMU forwards to it.
func (p *Provider) Reach(o providers.Object, values cty.Value) (providers.Login, error) {
	port := ctyread.Uint(o.Attrs, "ssh_port")
	switch {
	case o.Unreadable["ssh_port"] != "":
		return providers.Login{}, &providers.NotYetError{Err: fmt.Errorf("its SSH port could not be read: %s", o.Unreadable["ssh_port"])}
	case port == 0 && isForeign(o):
		return providers.Login{}, errors.New("vmctl did not make it: it forwards no port to its SSH, and does not know how to log in; use the address and the key that it was made with")
	case port == 0:
		return providers.Login{}, &providers.NotYetError{Err: errors.New("no port of this host leads to its SSH")}
	case p.location.Remote != "":
		return providers.Login{}, fmt.Errorf("its SSH is on the host %s alone, which this build does not reach into", p.location.Remote)
	}
	l := machine.DecodeLogin(values)
	l.User = cmp.Or(l.User, "root") // the record of an imported VM may name no user
	hostKey := ""
	if o.Owner != nil {
		hostKey = o.Owner.HostKey
	}
	login := p.login(string(o.ID), o.Name, l, hostKey)
	login.Port = int(port) //nolint:gosec // a port fits
	return guest.WithKey(login)
}

// isForeign reports whether vmctl manages a VM that it did not make: such a VM has no address
// from vmctl.
func isForeign(o providers.Object) bool {
	address := ctyread.Attr(o.Attrs, "address")
	return address != cty.NilVal && !ctyread.Known(address)
}
