package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/internal/ippool"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// network is a network of libvirt.
type network struct {
	Name, UUID string
	Active     bool
	Transient  bool   // has no configuration: it is gone when it ends
	XML        string // of its configuration; of a transient one: as it is active
}

// lease is an address of a network that belongs to a network card.
type lease struct {
	MAC string // in lower case
	IP  netip.Addr
}

// leaseMinutes is the time for which a guest has its address before it asks again. The address of a guest that is gone can be
// given away after it: until then, the DHCP server keeps it.
const leaseMinutes = 5

// element writes the lease as a host entry of a network.
func (l lease) element() (string, error) {
	entry := libvirtxml.NetworkDHCPHost{MAC: l.MAC, IP: l.IP.String(), Lease: &libvirtxml.NetworkDHCPLease{Expiry: leaseMinutes, Unit: "minutes"}}
	text, err := entry.Marshal()
	if err != nil {
		return "", fmt.Errorf("describe the host entry of %s: %w", l.IP, err)
	}
	return text, nil
}

// isReserved reports whether a network refused a host entry because it has one for that address or MAC.
func isReserved(err error) bool {
	var e *libvirtError
	return errors.As(err, &e) && strings.Contains(e.Message, "existing dhcp host entry")
}

// networkDescription holds a network's XML, as far as vmctl reads it.
type networkDescription struct {
	Prefix   netip.Prefix // zero: the host has no IPv4 address in it
	Host     netip.Addr   // the address of the host
	Internal bool
	Bridge   string
	Entries  []lease // its host entries
	Owner    *owner  // nil: no mark
}

type networkXML struct {
	XMLName xml.Name `xml:"network"`
	Forward *struct {
		Mode string `xml:"mode,attr"`
	} `xml:"forward"`
	Bridge struct {
		Name string `xml:"name,attr"`
	} `xml:"bridge"`
	IPs  []networkIP `xml:"ip"`
	Mark struct {
		Owner *ownerXML `xml:"urn:vmctl:1 owner"`
	} `xml:"metadata"`
}

type networkIP struct {
	Address string `xml:"address,attr"`
	Netmask string `xml:"netmask,attr"`
	Prefix  int    `xml:"prefix,attr"`
	Hosts   []struct {
		MAC string `xml:"mac,attr"`
		IP  string `xml:"ip,attr"`
	} `xml:"dhcp>host"`
}

// describeNetwork reads a network's XML.
func describeNetwork(text string) (networkDescription, error) {
	var x networkXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return networkDescription{}, fmt.Errorf("read the network's description: %w", err)
	}
	d := networkDescription{Internal: x.Forward == nil, Bridge: x.Bridge.Name, Owner: x.Mark.Owner.owner()}
	for _, ip := range x.IPs {
		if host, prefix, ok := ip.subnet(); ok && !d.Prefix.IsValid() {
			d.Host, d.Prefix = host, prefix
		}
		for _, h := range ip.Hosts {
			if a, err := netip.ParseAddr(h.IP); err == nil {
				d.Entries = append(d.Entries, lease{MAC: strings.ToLower(h.MAC), IP: a})
			}
		}
	}
	return d, nil
}

// subnet returns the address of the host and the IPv4 prefix; false: it is another one.
func (x networkIP) subnet() (host netip.Addr, prefix netip.Prefix, ok bool) {
	host, err := netip.ParseAddr(x.Address)
	if err != nil || !host.Is4() {
		return netip.Addr{}, netip.Prefix{}, false
	}
	bits := x.Prefix
	if mask := net.ParseIP(x.Netmask).To4(); mask != nil {
		bits, _ = net.IPMask(mask).Size()
	}
	prefix, err = host.Prefix(bits)
	return host, prefix, err == nil
}

// entry returns the address that the network reserves for a MAC; zero: none.
func (d networkDescription) entry(mac string) netip.Addr { return addressOf(d.Entries, mac) }

func addressOf(all []lease, mac string) netip.Addr {
	if i := slices.IndexFunc(all, func(l lease) bool { return l.MAC == mac }); i >= 0 {
		return all[i].IP
	}
	return netip.Addr{}
}

// has reports whether a domain has a card in the network, as libvirt's network or by its bridge.
func (n observedNetwork) has(d description) bool {
	return slices.ContainsFunc(d.Cards, func(c card) bool { return c.isIn(n) })
}

// observedNetwork is a network and its description.
type observedNetwork struct {
	network
	networkDescription
	Leases []lease // of its DHCP server
}

func (n network) observed() (observedNetwork, error) {
	d, err := describeNetwork(n.XML)
	if err != nil {
		return observedNetwork{network: n}, fmt.Errorf("network %s: %w", n.Name, err)
	}
	return observedNetwork{network: n, networkDescription: d}, nil
}

// seen returns the network in a spec's words.
func (n observedNetwork) seen(uri string) machine.SeenNetwork {
	s := machine.SeenNetwork{
		Network: machine.Network{Prefix: n.Prefix, Internal: n.Internal}, ID: providers.ID(n.UUID), Name: n.Name,
		Claims: []providers.Claim{networkNameClaim(uri, n.Name)},
	}
	if n.Owner == nil {
		return s
	}
	s.Mark = &n.Owner.Mark
	partial := func(why, action string) {
		s.Findings = append(s.Findings, providers.Finding{
			Kind: providers.FindPartial, Address: n.Owner.Address, Object: n.Name, Evidence: []string{why}, Action: action,
		})
	}
	switch {
	case n.Transient:
		partial("it was undefined while it was active: without a definition it is gone when it ends", "defined again")
	case !n.Active:
		partial("it is not active: no VM of it can start", "started")
	}
	return s
}

func networkNameClaim(uri, name string) providers.Claim {
	return providers.Claim{Kind: "network name", Key: uri + " " + name}
}

// freshNetwork returns the XML of a network that does not exist. libvirt chooses its bridge.
func freshNetwork(name, uuid, mark string, want machine.Network) (string, error) {
	x := libvirtxml.Network{
		Name: name, UUID: uuid, Metadata: &libvirtxml.NetworkMetadata{XML: mark},
		IPs: []libvirtxml.NetworkIP{{Address: ippool.Pool{Prefix: want.Prefix}.Host().String(), Prefix: uint(want.Prefix.Bits())}}, //nolint:gosec // 8 to 30
	}
	if !want.Internal {
		x.Forward = &libvirtxml.NetworkForward{Mode: "nat"}
	}
	text, err := x.Marshal()
	if err != nil {
		return "", fmt.Errorf("describe the network %s: %w", name, err)
	}
	return text, nil
}
