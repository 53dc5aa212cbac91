package libvirt

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// networkIndex holds the networks of one look.
type networkIndex struct {
	seen    []observedNetwork // networks with our mark, and networks that are asked for
	others  []observedNetwork
	unknown []providers.Unknown
	partial error // the reason why the listing is incomplete; nil: it is complete
	asked   request
	lineage string
}

// indexNetworks observes the networks.
func (p *Provider) indexNetworks(ctx context.Context, c connection, q request) networkIndex {
	r := networkIndex{asked: q, lineage: p.settings.Project.Lineage()}
	all, err := p.networks(ctx, c)
	if err != nil {
		r.partial = fmt.Errorf("list the networks of %s: %w", p.location.URI, err)
		return r
	}
	for _, found := range all {
		n, err := found.observed()
		if err == nil && !r.isAsked(n) {
			r.others = append(r.others, n)
			continue
		}
		if err == nil && n.Active {
			n.Leases, err = c.Leases(ctx, n.UUID)
		}
		if err != nil {
			r.unknown = append(r.unknown, providers.Unknown{Kind: spec.Network, ID: providers.ID(n.UUID), Name: n.Name, Reason: err.Error()})
			continue
		}
		r.seen = append(r.seen, n)
	}
	return r
}

// isAsked reports whether the query or this project's mark asks for a network.
func (r networkIndex) isAsked(n observedNetwork) bool {
	asked := r.asked.networks
	return n.Owner != nil && n.Owner.ID == r.lineage || len(asked.ids[n.UUID])+len(asked.names[n.Name])+len(r.importers(n)) > 0
}

// importers returns the places of the query that import a network, by its name or UUID.
func (r networkIndex) importers(n observedNetwork) []int {
	return sorted(r.asked.networks.imports[n.UUID], r.asked.networks.imports[n.Name])
}

// called returns the planner's name of a network that a domain was put into, and its ID: its present address, or its own name. One that
// could not be read is taken for the one that it was.
func (r networkIndex) called(m markedNetwork) (string, providers.ID) {
	i := slices.IndexFunc(r.seen, func(n observedNetwork) bool { return n.Name == m.Name })
	if i < 0 && r.unread(m) != "" {
		return r.remembered(m)
	}
	if i < 0 {
		return m.Name + " (gone)", ""
	}
	n := r.seen[i]
	id := providers.ID(n.UUID)
	if k, known := r.asked.first(r.asked.networks.ids[n.UUID]); known {
		return k.Address.String(), id
	}
	if k, imported := r.asked.first(r.importers(n)); imported && n.Owner == nil {
		return k.Address.String(), id
	}
	if o := n.Owner; o != nil && o.ID == r.lineage && o.Of == id {
		return o.Address.String(), id
	}
	return n.Name, id
}

// unread returns why a network that a domain was put into could not be read; "": it was, or it is gone.
func (r networkIndex) unread(m markedNetwork) string {
	isIt := func(name string) bool { return name == m.Name }
	if i := slices.IndexFunc(r.unknown, func(u providers.Unknown) bool { return isIt(u.Name) }); i >= 0 {
		return fmt.Sprintf("network %s: %s", m.Name, r.unknown[i].Reason)
	}
	if r.partial != nil && !slices.ContainsFunc(r.seen, func(n observedNetwork) bool { return isIt(n.Name) }) {
		return r.partial.Error()
	}
	return ""
}

// remembered returns the planner's name of a network that could not be read, and its ID: by the query, else by the mark of the domain.
func (r networkIndex) remembered(m markedNetwork) (string, providers.ID) {
	if k, known := r.asked.first(r.asked.networks.names[m.Name]); known {
		return k.Address.String(), k.ID
	}
	return m.Address.String(), ""
}

// unreadOf returns why a network of a domain could not be read; "": all of them were.
func (r networkIndex) unreadOf(d description) string {
	for _, m := range d.places() {
		if why := r.unread(m); why != "" {
			return why
		}
	}
	return ""
}

// interfaces returns the networks that vmctl put a domain into, in a spec's words.
func (r networkIndex) interfaces(d description) []machine.SeenInterface {
	all := []machine.SeenInterface{}
	for _, m := range d.places() {
		called, id := r.called(m)
		all = append(all, machine.SeenInterface{Called: called, Name: m.Name, ID: id, IP: m.IP})
	}
	return all
}

// claims returns the claims of a domain by the cards in networks that somebody else gave it.
func (r networkIndex) claims(s observedDomain) []providers.Claim {
	var all []providers.Claim
	add := func(c providers.Claim) {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	for _, d := range s.versions() {
		for _, c := range d.Cards {
			for _, n := range r.seen {
				if !c.isIn(n) || slices.ContainsFunc(d.places(), func(m markedNetwork) bool { return m.is(c) }) {
					continue
				}
				add(machine.NetworkUse(providers.ID(n.UUID)))
				if ip := n.addressOf(c.MAC); ip.IsValid() {
					add(providers.AddressClaim(n.Name, ip))
				}
			}
		}
	}
	return all
}

// versions returns the descriptions of a domain: of its next start, and of the running one.
func (s observedDomain) versions() []description {
	if s.running == nil {
		return []description{s.configured}
	}
	return []description{s.configured, *s.running}
}

// addressOf returns the address that a card has, by a host entry or a lease; zero: none.
func (n observedNetwork) addressOf(mac string) netip.Addr {
	if ip := n.entry(mac); ip.IsValid() {
		return ip
	}
	return addressOf(n.Leases, mac)
}

// findings returns a finding if a network has lost the host entry of a domain's address.
func (r networkIndex) findings(s observedDomain) []providers.Finding {
	for _, m := range s.configured.places() {
		i := slices.IndexFunc(r.seen, func(n observedNetwork) bool { return n.Name == m.Name })
		if i < 0 || r.seen[i].entry(m.MAC) == m.IP || s.configured.isForeign() {
			continue
		}
		return []providers.Finding{{
			Kind: providers.FindPartial, Address: s.owner().Address, Object: s.Name, Attr: networkAttr,
			Evidence: []string{fmt.Sprintf("the network %s has no host entry for its address %s", m.Name, m.IP)}, Action: "reserved again",
		}}
	}
	return nil
}

// collectNetworks puts the networks into an inventory. domains are the domains there.
func (p *Provider) collectNetworks(inv *providers.Inventory, domains []observedDomain, r networkIndex) {
	inv.Unknown = append(inv.Unknown, r.unknown...)
	asks := len(r.asked.networks.addresses) > 0
	if asks && r.partial != nil {
		inv.Partial[spec.Network] = providers.Unread(r.partial)
	}
	if no := p.noNetworks(); asks && no != nil {
		if inv.Missing == nil {
			inv.Missing = map[spec.Kind]*providers.Problem{}
		}
		inv.Missing[spec.Network] = no
	}
	if asks {
		inv.Subnets = p.subnets(r)
	}
	for _, n := range r.seen {
		for _, i := range r.importers(n) {
			inv.Found[r.asked.Known[i].Address] = providers.ID(n.UUID)
		}
		seen := n.seen(p.location.URI)
		seen.Leases = n.leasesOfOthers(r.cards(n, domains))
		inv.Objects = append(inv.Objects, seen.Object())
	}
}

// cards returns the MACs in a network that belong to domains: those that are there, and those that a record or a block means, which
// an interrupted run may not have made yet.
func (r networkIndex) cards(n observedNetwork, domains []observedDomain) map[string]bool {
	all := map[string]bool{}
	for _, s := range domains {
		for _, d := range s.versions() {
			for _, c := range d.Cards {
				all[c.MAC] = true
			}
		}
	}
	for name := range r.asked.vms.names {
		all[macIn(name, n.Name)] = true
	}
	return all
}

// leasesOfOthers lists the addresses that are in use by others than the cards of domains: by entries and leases, and by the host
// where its address is not the first one.
func (n observedNetwork) leasesOfOthers(cards map[string]bool) []netip.Addr {
	var all []netip.Addr
	for _, l := range slices.Concat(n.Entries, n.Leases) {
		if l.IP.Is4() && !cards[l.MAC] && !slices.Contains(all, l.IP) {
			all = append(all, l.IP)
		}
	}
	if n.Prefix.IsValid() && n.Host != n.Prefix.Masked().Addr().Next() {
		all = append(all, n.Host)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// subnets returns the IPv4 networks that the host is in, by its routes, and those of libvirt's other networks.
func (p *Provider) subnets(r networkIndex) []netip.Prefix {
	var all []netip.Prefix
	add := func(prefix netip.Prefix) {
		if prefix.IsValid() && prefix.Bits() > 0 && !slices.Contains(all, prefix) {
			all = append(all, prefix)
		}
	}
	for _, n := range r.others {
		add(n.Prefix)
	}
	if p.location.Here {
		text, err := os.ReadFile(filepath.Join(p.host.Proc, "net/route"))
		if err != nil { // they cannot be told
			return all
		}
		for _, route := range parseRoutes(string(text)) {
			if !slices.ContainsFunc(r.seen, func(n observedNetwork) bool { return n.Bridge != "" && n.Bridge == route.through }) {
				add(route.to)
			}
		}
	}
	return all
}

type route struct {
	through string // the name of an interface
	to      netip.Prefix
}

// parseRoutes reads the kernel's table of IPv4 routes (/proc/net/route). Its numbers are in the byte order of the network, written as
// those of a host.
func parseRoutes(text string) []route {
	var all []route
	for line := range strings.Lines(text) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		to, ok := routeNumber(fields[1])
		mask, maskOK := routeNumber(fields[7])
		if !ok || !maskOK {
			continue
		}
		prefix, err := netip.AddrFrom4(to).Prefix(bits.LeadingZeros32(^binary.BigEndian.Uint32(mask[:])))
		if err == nil {
			all = append(all, route{through: fields[0], to: prefix})
		}
	}
	return all
}

func routeNumber(text string) (number [4]byte, ok bool) {
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil {
		return number, false
	}
	binary.NativeEndian.PutUint32(number[:], uint32(n))
	return number, true
}
