//go:build cgo && libvirt_dlopen

package libvirt

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"libvirt.org/go/libvirt"
)

func (c *conn) Networks(ctx context.Context) ([]network, error) {
	return ask(ctx, c, "list networks", func(_ context.Context) ([]network, error) {
		found, err := c.c.ListAllNetworks(0)
		if err != nil {
			return nil, err
		}
		var all []network
		for i := range found {
			n, err := readNetwork(&found[i])
			free(&found[i])
			if errors.Is(err, libvirt.ERR_NO_NETWORK) { // the network was removed during the listing
				continue
			}
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
		return all, nil
	})
}

// readNetwork reads a network with its configuration: that of its next start, if it has one.
func readNetwork(n *libvirt.Network) (network, error) {
	var read network
	var err error
	if read.Name, err = n.GetName(); err != nil {
		return read, err
	}
	if read.UUID, err = n.GetUUIDString(); err != nil {
		return read, err
	}
	if read.Active, err = n.IsActive(); err != nil {
		return read, err
	}
	persistent, err := n.IsPersistent()
	if err != nil {
		return read, err
	}
	read.Transient = !persistent
	flags := libvirt.NETWORK_XML_INACTIVE
	if read.Transient {
		flags = 0
	}
	read.XML, err = n.GetXMLDesc(flags)
	return read, err
}

func (c *conn) Network(ctx context.Context, uuid string) (network, error) {
	return ask(ctx, c, "read network "+uuid, func(_ context.Context) (network, error) {
		n, err := c.c.LookupNetworkByUUIDString(uuid)
		if err != nil {
			return network{}, err
		}
		defer free(n)
		return readNetwork(n)
	})
}

func (c *conn) NetworkNamed(ctx context.Context, name string) (network, error) {
	return ask(ctx, c, "read network "+name, func(_ context.Context) (network, error) {
		n, err := c.c.LookupNetworkByName(name)
		if err != nil {
			return network{}, err
		}
		defer free(n)
		return readNetwork(n)
	})
}

func (c *conn) Leases(ctx context.Context, uuid string) ([]lease, error) {
	return ask(ctx, c, "list the leases of network "+uuid, func(_ context.Context) ([]lease, error) {
		n, err := c.c.LookupNetworkByUUIDString(uuid)
		if err != nil {
			return nil, err
		}
		defer free(n)
		found, err := n.GetDHCPLeases()
		if err != nil {
			return nil, err
		}
		var all []lease
		for _, f := range found {
			if ip, err := netip.ParseAddr(f.IPaddr); err == nil {
				all = append(all, lease{MAC: strings.ToLower(f.Mac), IP: ip})
			}
		}
		return all, nil
	})
}

func (c *conn) DefineNetwork(ctx context.Context, xml string) error {
	return change(ctx, c, "define a network", func() error {
		n, err := c.c.NetworkDefineXML(xml)
		if err != nil {
			return err
		}
		free(n)
		return nil
	})
}

// onNetwork changes a network.
func (c *conn) onNetwork(ctx context.Context, uuid, doing string, f func(*libvirt.Network) error) error {
	return change(ctx, c, doing, func() error {
		n, err := c.c.LookupNetworkByUUIDString(uuid)
		if err != nil {
			return err
		}
		defer free(n)
		return f(n)
	})
}

func (c *conn) StartNetwork(ctx context.Context, uuid string) error {
	return c.onNetwork(ctx, uuid, "start network "+uuid, func(n *libvirt.Network) error {
		if err := n.SetAutostart(true); err != nil {
			return err
		}
		if active, err := n.IsActive(); err != nil || active {
			return err
		}
		return n.Create()
	})
}

func (c *conn) RemoveNetwork(ctx context.Context, uuid string) error {
	return c.onNetwork(ctx, uuid, "remove network "+uuid, func(n *libvirt.Network) error {
		persistent, err := n.IsPersistent()
		if err != nil {
			return err
		}
		active, err := n.IsActive()
		if err != nil {
			return err
		}
		if active {
			if err := n.Destroy(); err != nil {
				return err
			}
		}
		if !persistent {
			return nil
		}
		return n.Undefine()
	})
}

func (c *conn) Reserve(ctx context.Context, uuid string, l lease) error {
	return c.updateHosts(ctx, uuid, "reserve "+l.IP.String(), libvirt.NETWORK_UPDATE_COMMAND_ADD_LAST, l)
}

func (c *conn) Unreserve(ctx context.Context, uuid string, l lease) error {
	return c.updateHosts(ctx, uuid, "release "+l.IP.String(), libvirt.NETWORK_UPDATE_COMMAND_DELETE, l)
}

// anyParent lets libvirt find the part of the network that has the DHCP server.
const anyParent = -1

func (c *conn) updateHosts(ctx context.Context, uuid, doing string, command libvirt.NetworkUpdateCommand, l lease) error {
	return c.onNetwork(ctx, uuid, doing, func(n *libvirt.Network) error {
		text, err := l.element()
		if err != nil {
			return err
		}
		return n.Update(command, libvirt.NETWORK_SECTION_IP_DHCP_HOST, anyParent, text, affected(n))
	})
}

// affected returns the versions of a network that a change is for: its configuration, as far as it has one, and what is active.
func affected(n *libvirt.Network) libvirt.NetworkUpdateFlags {
	var flags libvirt.NetworkUpdateFlags
	if active, err := n.IsActive(); err == nil && active {
		flags |= libvirt.NETWORK_UPDATE_AFFECT_LIVE
	}
	if persistent, err := n.IsPersistent(); err == nil && persistent {
		flags |= libvirt.NETWORK_UPDATE_AFFECT_CONFIG
	}
	return flags
}
