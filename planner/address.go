package planner

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/internal/ippool"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Chosen returns the attributes of a change in which vmctl chose addresses. They are in the record of an object before it is
// made: whatever ends the run then, the object gets the same ones, and nobody else does.
func (c *Change) Chosen() map[string]cty.Value {
	all := map[string]cty.Value{}
	for _, name := range []string{natures[c.Kind].prefix, natures[c.Kind].interfaces} {
		v := ctyread.Attr(c.Change.Want, name)
		if ctyread.Known(v) && v.IsWhollyKnown() && (v.Type() == cty.String || v.LengthInt() > 0) {
			all[name] = v
		}
	}
	return all
}

// choose puts addresses into the wanted attributes of a change where the spec leaves them to vmctl: the prefix of a network that
// avoids those of its host, and the addresses of a VM in its networks. What was chosen once is kept.
func (d *differ) choose(c *Change, seen Observation) {
	if c.Want == nil || d.options.Destroy || c.Record != nil && d.isPower() {
		return
	}
	switch of := natures[c.Kind]; {
	case of.prefix != "":
		d.choosePrefix(c, seen, of.prefix)
	case of.interfaces != "":
		d.chooseAddresses(c, seen, of.interfaces)
	}
}

// had returns the values that the object of a change had, as vmctl chose them: by its record, else as the system shows them.
func (d *differ) had(c *Change, seen Observation) cty.Value {
	if c.Record != nil && ctyread.Known(c.Record.Values) {
		return c.Record.Values
	}
	if o := d.present(c, seen); o != nil {
		return o.Attrs
	}
	return cty.NilVal
}

// present returns the object of a change, or the one that it imports; nil: it does not exist.
func (d *differ) present(c *Change, seen Observation) *providers.Object {
	if isOurs(seen) {
		return seen.Object
	}
	if id, found := seen.System.Inventory.Found[c.Address]; found {
		return d.observations.indexes[seen.System.Key].byID[idKey{c.Kind, id}]
	}
	return nil
}

// choosePrefix chooses the prefix of a network whose block avoids those of its host. A network keeps its prefix as long as it exists,
// and one that is to be made keeps what was chosen for it unless that is in use by now.
func (d *differ) choosePrefix(c *Change, seen Observation, attr string) {
	wanted, err := netip.ParsePrefix(ctyread.Text(c.Change.Want, attr))
	if err != nil || !ctyread.True(c.Policy, "avoid_host_subnets") {
		return
	}
	candidates, used := d.candidates(c, wanted), d.usedPrefixes(c, seen)
	conflict, taken := inTheWay(used, wanted)
	had, err := netip.ParsePrefix(ctyread.Text(d.had(c, seen), attr))
	keeps := err == nil && isAmong(candidates, had) && !d.options.Replace[c.Address]
	if obstacle, hinders := inTheWay(used, had); keeps && (d.present(c, seen) != nil || !hinders) {
		switch {
		case hinders: // it came later
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s, which overlaps %s: the network keeps that as long as it exists, and --replace=%s chooses again", obstacle, had, c.Address))
		case had != wanted && !taken: // the host has left, or the block was edited
			c.Warnings = append(c.Warnings, fmt.Sprintf("it keeps %s, although %s is free: --replace=%s chooses again", had, wanted, c.Address))
		}
		c.Change.Want = with(c.Change.Want, attr, cty.StringVal(had.String()))
		return
	}
	free, ok := ippool.FreePrefix(candidates, prefixes(used))
	switch {
	case !ok:
		c.unchosen = &Block{Cause: CauseAddress, Problem: providers.Refuse(
			fmt.Sprintf("%s, and no fallback is free", conflict),
			providers.Say("write prefixes that are free into fallback_cidrs of "+c.Address.String()))}
	case free != wanted:
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: it gets %s in place of %s", conflict, free, wanted))
		c.Change.Want = with(c.Change.Want, attr, cty.StringVal(free.String()))
	}
}

// candidates iterates over the prefixes that a network may have, in the order in which they are tried.
func (d *differ) candidates(c *Change, wanted netip.Prefix) iter.Seq[netip.Prefix] {
	fallbacks := ctyread.Attr(c.Policy, "fallback_cidrs")
	if !ctyread.Known(fallbacks) {
		return ippool.Following(wanted)
	}
	all := []netip.Prefix{wanted}
	for _, text := range ctyread.List(fallbacks) {
		if p, err := netip.ParsePrefix(text.AsString()); err == nil {
			all = append(all, p)
		}
	}
	return slices.Values(all)
}

func isAmong(all iter.Seq[netip.Prefix], one netip.Prefix) bool {
	for p := range all {
		if p == one {
			return true
		}
	}
	return false
}

// usedPrefix is a prefix that is in use, or is to be.
type usedPrefix struct {
	netip.Prefix
	by string // the network that has it; "": the host is in it
}

// String says who is in the prefix.
func (u usedPrefix) String() string {
	if u.by == "" {
		return "its host is in " + u.Prefix.String()
	}
	return u.by + " has " + u.Prefix.String()
}

// inTheWay returns the first prefix in use that has addresses in common with another one, and true.
func inTheWay(used []usedPrefix, p netip.Prefix) (usedPrefix, bool) {
	i := slices.IndexFunc(used, func(u usedPrefix) bool { return u.Overlaps(p) })
	if i < 0 {
		return usedPrefix{}, false
	}
	return used[i], true
}

func prefixes(used []usedPrefix) []netip.Prefix {
	var all []netip.Prefix
	for _, u := range used {
		all = append(all, u.Prefix)
	}
	return all
}

// usedPrefixes lists the prefixes that the host of a network is in, and those that the other networks there have or get.
func (d *differ) usedPrefixes(c *Change, seen Observation) []usedPrefix {
	var used []usedPrefix
	for _, p := range seen.System.Inventory.Subnets {
		used = append(used, usedPrefix{Prefix: p})
	}
	add := func(by string, kind spec.Kind, v cty.Value) {
		if p, ok := prefixOf(kind, v); ok {
			used = append(used, usedPrefix{p, by})
		}
	}
	own := d.present(c, seen)
	for i := range seen.System.Inventory.Objects {
		if o := &seen.System.Inventory.Objects[i]; o != seen.Object && o != own {
			by := describe(seen.System, o)
			if a, ours := d.addressOfObject(o); ours {
				by = a.String()
			}
			add(by, o.Kind, o.Attrs)
		}
	}
	for _, other := range d.decided {
		if other.System == c.System && other.Address != c.Address {
			add(other.Address.String(), other.Kind, other.Change.Want)
		}
	}
	for a, r := range d.state.Records {
		if a != c.Address && d.decided[a] == nil && d.world.placed[a] == c.System {
			add(a.String(), a.Kind, r.Values)
		}
	}
	for i := range d.config.Resources {
		r := &d.config.Resources[i]
		if r.Address != c.Address && d.decided[r.Address] == nil && d.world.wanted[r.Address] == c.System && !ctyread.True(r.Policy, "avoid_host_subnets") {
			add(r.Address.String(), r.Address.Kind, r.Want)
		}
	}
	slices.SortFunc(used, compareUsed)
	return used
}

// prefixOf returns the prefix from which an object of a kind gives addresses; false: it gives none.
func prefixOf(kind spec.Kind, v cty.Value) (netip.Prefix, bool) {
	attr := natures[kind].prefix
	if attr == "" {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(ctyread.Text(v, attr))
	return p, err == nil
}

func compareUsed(a, b usedPrefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()), cmp.Compare(a.by, b.by))
}

// chooseAddresses gives a VM its addresses in its networks.
func (d *differ) chooseAddresses(c *Change, seen Observation, attr string) {
	interfaces := ctyread.List(ctyread.Attr(c.Change.Want, attr))
	if len(interfaces) == 0 {
		return
	}
	had, shown := ctyread.List(ctyread.Attr(d.had(c, seen), attr)), []cty.Value(nil)
	if isOurs(seen) {
		shown = ctyread.List(ctyread.Attr(seen.Object.Attrs, attr))
	}
	all := make([]cty.Value, len(interfaces))
	for i, e := range interfaces {
		all[i] = e
		network, err := spec.ParseAddress(ctyread.Text(e, "network"))
		if err != nil {
			continue
		}
		book := d.bookOf(network, seen.System)
		if book == nil { // the network is not to be there, which blocks the VM anyway
			continue
		}
		was, isIn := d.addressAt(had, network, i)
		if now, isNow := d.addressAt(shown, network, i); isNow && !isIn { // a run that put it there was cut short
			was, isIn = now, true
		}
		if isIn && isOurs(seen) && book.Fits(was) && ctyread.Text(e, "address") == spec.AutoIP {
			all[i] = with(e, "address", cty.StringVal(was.String())) // it exists, and keeps its address, whoever else has it
			continue
		}
		ip, problem := d.addressIn(c, book, ctyread.Text(e, "address"), was)
		if holds, shown := d.addressAt(shown, network, i); problem == nil && d.scope[c.Address] && (!shown || holds != ip) {
			problem = book.hidden
		}
		if problem != nil && c.unchosen == nil {
			c.unchosen = problem
		}
		if ip.IsValid() {
			all[i] = with(e, "address", cty.StringVal(ip.String()))
		}
	}
	c.Change.Want = with(c.Change.Want, attr, cty.ListVal(all))
}

// addressAt returns the address that a VM had in a network, and true. Else it returns the one at a place among its interfaces, which
// is worth keeping if nobody else has it, and false. Zero: it had none.
func (d *differ) addressAt(had []cty.Value, network spec.Address, place int) (netip.Addr, bool) {
	i := slices.IndexFunc(had, func(e cty.Value) bool { return d.isNetwork(e, network) })
	switch {
	case i >= 0:
		ip := addressOrNone(had[i], "address")
		return ip, ip.IsValid()
	case place < len(had):
		return addressOrNone(had[place], "address"), false
	default:
		return netip.Addr{}, false
	}
}

// isNetwork reports whether an interface is in a network, whatever that was called before.
func (d *differ) isNetwork(e cty.Value, network spec.Address) bool {
	a, err := spec.ParseAddress(ctyread.Text(e, "network"))
	return err == nil && (destination(d.config, a) == network || slices.Contains(d.state.Records[network].Was, a))
}

// book holds the facts about the addresses of one network.
type book struct {
	ippool.Book
	network spec.Address
	off     []string // VMs that are off and have an address
	leaving []string // the addresses of VMs that have one, and are to leave the network
	leased  bool     // the DHCP server has given some to guests that are gone, or that are no VMs of the system
	hidden  *Block   // of a VM that takes an address: somebody who could not be read may have it; nil: all addresses in use are known
}

// addressIn returns the address of a VM in a network: that of its block, or a chosen one. An address that cannot be had is a problem.
func (d *differ) addressIn(c *Change, b *book, said string, had netip.Addr) (netip.Addr, *Block) {
	if literal, err := netip.ParseAddr(said); err == nil {
		if b.Fits(literal) {
			return literal, d.unreadHolder(c, b.network, literal)
		}
		return literal, &Block{Cause: CauseAddress, Problem: providers.Refuse(
			fmt.Sprintf("its address %s cannot be used in %s, which is %s", literal, b.network, b.Prefix),
			providers.Say("write another address into the block of "+c.Address.String()+", or \"auto\""))}
	}
	if !d.scope[c.Address] && !had.IsValid() { // it is not made now
		return netip.Addr{}, nil
	}
	ip, ok := b.Choose(c.Address.String(), had)
	if ok {
		return ip, nil
	}
	next := providers.Say(fmt.Sprintf("widen allocation or cidr of %s, or take out of the files a VM that is not needed", b.network))
	if len(b.leaving) > 0 {
		var targets []string
		for _, a := range b.leaving {
			targets = append(targets, "--target="+a)
		}
		next = append(next, providers.SayVmctl(
			"the addresses of VMs that leave the network come free once they have left it. Let these leave first: ", append([]string{"apply"}, targets...)...)...)
	}
	if b.leased {
		next = append(next, providers.Say(fmt.Sprintf("%s has given addresses to guests that are gone or unmanaged: the address of one that is gone comes free when its lease ends", b.network))...)
	}
	if len(b.off) > 0 {
		next = append(next, providers.Say("VMs that are off keep their addresses: "+strings.Join(b.off, ", "))...)
	}
	return netip.Addr{}, &Block{Cause: CauseAddress, Problem: providers.Refuse(fmt.Sprintf("no address of %s is free", b.network), next)}
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
			holder := describe(system, o)
			if a, ours := d.addressOfObject(o); ours {
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

// addressOfObject returns the address of an object of this project: that of its record, else the one that its mark leads to.
func (d *differ) addressOfObject(o *providers.Object) (spec.Address, bool) {
	if a, recorded := d.recorded[o.ID]; recorded && a.Kind == o.Kind {
		return a, true
	}
	if MarkingOf(o, d.options.Project) != Ours {
		return spec.Address{}, false
	}
	return d.world.addressOf(o), true
}

// withoutAddress blocks a change for which no address could be chosen.
func (d *differ) withoutAddress(c *Change) {
	if c.unchosen != nil && c.Blocked == nil && !d.isPower() {
		c.Blocked = c.unchosen
	}
}
