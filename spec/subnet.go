package spec

import (
	"fmt"
	"net/netip"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
)

// AutoIP is the address of a network interface in a spec for which vmctl chooses one.
const AutoIP = "auto"

// The lengths of the shortest and of the longest prefix that a network may have: a longer one has no address for a virtual
// machine, and a shorter one holds more than any network of one host.
const (
	shortestPrefix = 8
	longestPrefix  = 30
)

// subnetProblem returns the mistake of a text that is no IPv4 prefix of a network: the rest of a sentence that begins with the
// attribute; "": it is one.
func subnetProblem(text string) string {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || !p.Addr().Is4():
		return fmt.Sprintf("is %q, which is not an IPv4 prefix: write for example \"192.168.123.0/24\".", shorten(text))
	case p != p.Masked():
		return fmt.Sprintf("is %q, which names an address inside of its network. Write %q.", text, p.Masked())
	case p.Bits() < shortestPrefix || p.Bits() > longestPrefix:
		return fmt.Sprintf("is %q; the prefix of a network is from /%d to /%d long.", text, shortestPrefix, longestPrefix)
	}
	return ""
}

// ipv4Problem returns the mistake of a text that is no IPv4 address, as subnetProblem does.
func ipv4Problem(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() {
		return fmt.Sprintf("is %q, which is not an IPv4 address: write for example \"192.168.123.10\".", shorten(text))
	}
	return ""
}

// canonicalAddresses checks a list of prefixes or addresses.
func canonicalAddresses(a Attr, v cty.Value) (cty.Value, string) {
	for _, item := range v.AsValueSlice() {
		if item.IsNull() {
			return cty.NilVal, "has an element that is null. Leave it out."
		}
		m := ""
		if a.Form == Subnets {
			m = subnetProblem(item.AsString())
		} else {
			m = ipv4Problem(item.AsString())
		}
		if m != "" {
			return cty.NilVal, "has an element that " + m
		}
	}
	return v, ""
}

// checkNetworks reports what cannot be true of networks of virtual machines, whatever the system: addresses outside of
// them, fallbacks of another size, interfaces in a network that the machine cannot be in.
func (l *loader) checkNetworks(c *Config) {
	for _, n := range c.evaluator.order {
		if n.resource == nil {
			continue
		}
		for _, i := range c.evaluator.base.result(n).instances {
			switch i.resource.Address.Kind { //nolint:exhaustive // no other kind has addresses
			case Network:
				l.checkNetwork(n.resource, i.resource)
			case VM:
				l.checkInterfaces(c, n.resource, i)
			}
		}
	}
}

// checkNetwork reports what does not fit the cidr of a network.
func (l *loader) checkNetwork(b *resourceBlock, r Resource) {
	prefix, err := netip.ParsePrefix(ctyread.Text(r.Want, "cidr"))
	if err != nil || r.Policy == cty.NilVal {
		return
	}
	add := func(name, summary, format string, args ...any) {
		l.diags = append(l.diags, mistake(b.rangeAt(name), summary, format, args...))
	}
	for _, text := range ctyread.List(ctyread.Attr(r.Policy, "fallback_cidrs")) {
		if p, err := netip.ParsePrefix(text.AsString()); err == nil && p.Bits() != prefix.Bits() {
			add("fallback_cidrs", "Network of another size", "`fallback_cidrs` of `%s` has %s, and `cidr` is %s: all of them have to be of one size.", r.Address, p, prefix)
		}
	}
	allocation := ctyread.Attr(r.Policy, "allocation")
	if !ctyread.Known(allocation) {
		return
	}
	var bounds []netip.Addr
	outside := false
	check := func(name, text string) {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		if !prefix.Contains(ip) {
			add("allocation", "Address outside of the network", "`allocation.%s` of `%s` is %s, and the network is %s.", name, r.Address, ip, prefix)
			outside = true
		}
		if name != "reserved" {
			bounds = append(bounds, ip)
		}
	}
	check("first", ctyread.Text(allocation, "first"))
	check("last", ctyread.Text(allocation, "last"))
	for _, text := range ctyread.List(ctyread.Attr(allocation, "reserved")) {
		check("reserved", text.AsString())
	}
	if len(bounds) == 2 && !outside && bounds[1].Less(bounds[0]) {
		add("allocation", "Empty allocation", "`allocation` of `%s` ends at %s, before it begins at %s.", r.Address, bounds[1], bounds[0])
	}
}

// checkInterfaces reports interfaces in a network of an engine or of another system, and addresses that their network
// does not have.
func (l *loader) checkInterfaces(c *Config, b *resourceBlock, i instance) {
	vm := i.resource
	addresses := map[Address]string{}
	for _, e := range ctyread.List(ctyread.Attr(vm.Want, "network_interface")) {
		if to, err := ParseAddress(ctyread.Text(e, "network")); err == nil {
			addresses[to] = ctyread.Text(e, "address")
		}
	}
	for _, ref := range i.resourceRefs {
		network, ok := c.Resource(ref.to)
		if ref.to.Kind != Network || !ok || vm.Provider == (ProviderRef{}) || network.Provider == (ProviderRef{}) {
			continue
		}
		switch e := c.evaluator; {
		case network.Inside != Address{}:
			l.diags = append(l.diags, mistake(ref.rng, "Network of an engine",
				"`%s` is a network of `%s`, for containers. A VM has a network with `provider`.", network.Address, network.Inside))
		case e.system(network.Provider) != e.system(vm.Provider):
			l.diags = append(l.diags, mistake(ref.rng, "Network of another provider",
				"`%s` belongs to `%s`, and `%s` to `%s`. A VM and its networks have the same provider: change `provider` of one of them.",
				network.Address, network.Provider, vm.Address, vm.Provider))
		default:
			l.checkAddress(b, vm, network, addresses[ref.to])
		}
	}
}

// checkAddress reports an address that a network could never give to a machine.
func (l *loader) checkAddress(b *resourceBlock, vm, network Resource, text string) {
	ip, err := netip.ParseAddr(text)
	prefix, unsound := netip.ParsePrefix(ctyread.Text(network.Want, "cidr"))
	if err != nil || unsound != nil || ctyread.True(network.Policy, "avoid_host_subnets") {
		return
	}
	switch at := b.rangeAt("network_interface"); {
	case !prefix.Contains(ip):
		l.diags = append(l.diags, mistake(at, "Address outside of the network",
			"`network_interface.address` of `%s` is %s, and `%s` is %s.", vm.Address, ip, network.Address, prefix))
	case ip == prefix.Addr() || ip == prefix.Addr().Next() || !prefix.Contains(ip.Next()):
		l.diags = append(l.diags, mistake(at, "Reserved address",
			"`network_interface.address` of `%s` is %s. The first address of %s is the network's, the second one the host's, and the last one is the broadcast address.",
			vm.Address, ip, prefix))
	}
}
