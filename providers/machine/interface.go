package machine

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
)

// Interface is a place of a VM in a network for VMs.
type Interface struct {
	Network spec.Address
	IP      netip.Addr
}

// SeenInterface is an Interface as a system was seen to have it.
type SeenInterface struct {
	Called string       // the address of the network, else its name in words
	Name   string       // the system's name of the network
	ID     providers.ID // of the network; "": not known
	IP     netip.Addr   // zero: not known
}

// decodeInterfaces reads the interfaces of a vm, in order. It leaves out one whose address is not chosen.
func decodeInterfaces(v cty.Value) ([]Interface, error) {
	var all []Interface
	for _, e := range ctyread.List(v) {
		network, text := ctyread.Text(e, "network"), ctyread.Text(e, "address")
		if network == "" || text == "" || text == spec.AutoIP {
			continue
		}
		a, err := spec.ParseAddress(network)
		if err != nil || a.Kind != spec.Network {
			return nil, fmt.Errorf("network_interface.network = %q is no network of this spec", network)
		}
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("network_interface.address = %q is no address", text)
		}
		all = append(all, Interface{Network: a, IP: ip})
	}
	return all, nil
}

// NetworkUse returns the claim of whoever is in the network of that ID: while somebody has it, the network is not removed.
func NetworkUse(id providers.ID) providers.Claim {
	return providers.Claim{Kind: providers.ClaimUse, Key: "network " + string(id)}
}

// Shares returns the claims of a wanted VM that others may have, too: on its networks, as far as their IDs are known.
func Shares(want VM, uses map[spec.Address]providers.Used) []providers.Claim {
	var all []providers.Claim
	for _, i := range want.Interfaces {
		if id := uses[i.Network].ID; id != "" {
			all = append(all, NetworkUse(id))
		}
	}
	return all
}

// InterfacesValue returns interfaces as the attribute network_interface.
func InterfacesValue(all []SeenInterface) cty.Value {
	if len(all) == 0 {
		return cty.ListValEmpty(cty.Object(map[string]cty.Type{"network": cty.String, "address": cty.String}))
	}
	var values []cty.Value
	for _, i := range all {
		address := cty.NullVal(cty.String)
		if i.IP.IsValid() {
			address = cty.StringVal(i.IP.String())
		}
		values = append(values, cty.ObjectVal(map[string]cty.Value{"network": cty.StringVal(i.Called), "address": address}))
	}
	return cty.ListVal(values)
}

// AddressIn returns the attribute with the address of a VM: in the first of its networks, else the one at which SSH is reached.
func AddressIn() providers.Attribute {
	return providers.Attribute{Computed: true, Lasts: func(now, want cty.Value) cty.Value {
		if all := ctyread.List(ctyread.Attr(want, "network_interface")); len(all) > 0 {
			if ip, err := netip.ParseAddr(ctyread.Text(all[0], "address")); err == nil {
				return cty.StringVal(ip.String())
			}
		}
		return now
	}}
}

func (c *Config) addressClaims() []providers.Claim {
	if c == nil {
		return nil
	}
	var all []providers.Claim
	for _, i := range c.Interfaces {
		if i.IP.IsValid() {
			all = append(all, providers.AddressClaim(i.Name, i.IP))
		}
	}
	return all
}

func (c *Config) networkClaims() []providers.Claim {
	if c == nil {
		return nil
	}
	var all []providers.Claim
	for _, i := range c.Interfaces {
		if i.ID != "" {
			all = append(all, NetworkUse(i.ID))
		}
	}
	return all
}
