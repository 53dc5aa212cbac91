package planner

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/ippool"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// book holds the facts about the addresses of one network.
type book struct {
	ippool.Book
	network spec.Address
	off     []string // VMs that are off and have an address
	leaving []string // the addresses of VMs that have one, and are to leave the network
	leased  bool     // the DHCP server has given some to guests that are gone, or that are no VMs of the system
	hidden  *Block   // of a VM that takes an address: somebody who could not be read may have it; nil: all addresses in use are known
}

// unreadHolder returns a block if another VM has an address of a network by its record, and could not be read. nil: none has.
func (d *differ) unreadHolder(c *Change, network spec.Address, ip netip.Addr) *Block {
	for _, a := range slices.SortedFunc(maps.Keys(d.state.Records), spec.Address.Compare) {
		r := d.state.Records[a]
		if a == c.Address || !slices.Contains(d.addressesIn(network, a.Kind, r.Values), ip) {
			continue
		}
		if why := d.observations.At(a, r.Name).Unknown; why != nil {
			return unread(why.Within("%s has the address %s of %s by its record, and could not be read", a, ip, network))
		}
	}
	return nil
}

// bookOf returns what is known of the addresses of a network in a system; nil: the network has no addresses.
func (d *differ) bookOf(network spec.Address, system *System) *book {
	if known, done := d.books[network]; done {
		return known
	}
	d.books[network] = nil
	decided := d.decided[network]
	if decided == nil {
		return nil
	}
	prefix, ok := prefixOf(network.Kind, decided.Change.Want)
	if !ok {
		return nil
	}
	b := &book{network: network, Book: ippool.Book{Pool: poolOf(decided, prefix)}}
	d.holdWanted(b)
	d.holdObserved(b, d.used[network].Name, system)
	if decided.Object != nil && decided.Object.Unreadable["addresses"] != "" {
		b.hidden = unread(providers.Refuse(
			fmt.Sprintf("it needs an address of %s, and not all in use there are known: %s", network, decided.Object.Unreadable["addresses"]), nil))
	}
	slices.Sort(b.off)
	slices.Sort(b.leaving)
	d.books[network] = b
	return b
}

// poolOf returns the addresses to choose from of a network, which may have got another prefix than its block has.
func poolOf(network *Change, prefix netip.Prefix) ippool.Pool {
	pool := ippool.Pool{Prefix: prefix}
	allocation := ctyread.Attr(network.Policy, "allocation")
	pool.First, pool.Last = addressOrNone(allocation, "first"), addressOrNone(allocation, "last")
	for _, text := range ctyread.List(ctyread.Attr(allocation, "reserved")) {
		if ip, err := netip.ParseAddr(text.AsString()); err == nil {
			pool.Reserved = append(pool.Reserved, ip)
		}
	}
	said, ok := prefixOf(network.Kind, network.Want.Want)
	if !ok || said == prefix || said.Bits() != prefix.Bits() {
		return pool
	}
	pool.Prefix = said
	return pool.In(prefix)
}

func addressOrNone(v cty.Value, name string) netip.Addr {
	ip, err := netip.ParseAddr(ctyread.Text(v, name))
	if err != nil {
		return netip.Addr{}
	}
	return ip
}

// holdWanted notes the addresses that records have, and those that blocks name.
func (d *differ) holdWanted(b *book) {
	for a, r := range d.state.Records {
		held := d.addressesIn(b.network, a.Kind, r.Values)
		for _, ip := range held {
			b.Hold(ip, a.String())
		}
		if len(held) > 0 && d.leaves(a, r, b.network) {
			b.leaving = append(b.leaving, a.String())
		}
	}
	for i := range d.config.Resources {
		r := &d.config.Resources[i]
		for _, ip := range d.addressesIn(b.network, r.Address.Kind, r.Want) {
			b.Ask(ip)
		}
	}
}

// leaves reports whether a VM with a record is to be destroyed, or put out of a network by its block.
func (d *differ) leaves(a spec.Address, r state.Record, network spec.Address) bool {
	resource, wanted := d.planned(a)
	if !wanted {
		return !d.lets(a) && (!isPrevented(r.Policy) || d.options.Allow.Destroy[a] || d.ends(a))
	}
	interfaces := ctyread.Attr(resource.Want, natures[a.Kind].interfaces)
	if interfaces == cty.NilVal || !interfaces.IsWhollyKnown() {
		return false
	}
	return !slices.ContainsFunc(ctyread.List(interfaces), func(e cty.Value) bool { return d.isNetwork(e, network) })
}

// addressesIn lists the addresses that the attributes of an object name in a network, whatever the network was called before.
func (d *differ) addressesIn(network spec.Address, kind spec.Kind, values cty.Value) []netip.Addr {
	var all []netip.Addr
	attr := natures[kind].interfaces
	if attr == "" {
		return nil
	}
	for _, e := range ctyread.List(ctyread.Attr(values, attr)) {
		if ip := addressOrNone(e, "address"); ip.IsValid() && d.isNetwork(e, network) {
			all = append(all, ip)
		}
	}
	return all
}

// holdObserved notes the addresses that the system shows to be in use.
func (d *differ) holdObserved(b *book, name string, system *System) {
	for i := range system.Inventory.Objects {
		o := &system.Inventory.Objects[i]
		for _, held := range o.Holds {
			ip, of := held.AddressIn()
			if of != name || !ip.IsValid() {
				continue
			}
			if o.Kind == b.network.Kind && hasGuest(system, held) {
				continue
			}
			holder := describe(system, o)
			if a, ours := d.addressOfObject(system, o); ours {
				holder = a.String()
			}
			b.Hold(ip, holder)
			b.leased = b.leased || o.Kind == b.network.Kind
			if o.Running != nil && !*o.Running {
				b.off = append(b.off, holder)
			}
		}
	}
}

// hasGuest reports whether a VM has an address that a network has leased: the lease is that VM's own.
func hasGuest(system *System, leased providers.Claim) bool {
	return slices.ContainsFunc(system.Inventory.Objects, func(o providers.Object) bool {
		return natures[o.Kind].interfaces != "" && slices.Contains(o.Holds, leased)
	})
}

// addressOfObject returns the address of an object of this project: that of its record, else the one that its mark leads to, else the
// one to which it is imported.
func (d *differ) addressOfObject(system *System, o *providers.Object) (spec.Address, bool) {
	if a, recorded := d.recorded[o.ID]; recorded && a.Kind == o.Kind {
		return a, true
	}
	if MarkingOf(o, d.options.Project) == Ours {
		return d.world.addressOf(o), true
	}
	for a, id := range system.Inventory.Found {
		if a.Kind == o.Kind && id == o.ID && d.imports[a] != "" {
			return a, true
		}
	}
	return spec.Address{}, false
}
