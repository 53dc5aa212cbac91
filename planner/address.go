package planner

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/spec"
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

// chooseAddresses gives a VM its addresses in its networks.
func (d *differ) chooseAddresses(c *Change, seen Observation, attr string) {
	interfaces := ctyread.List(ctyread.Attr(c.Change.Want, attr))
	if len(interfaces) == 0 {
		return
	}
	had, shown := ctyread.List(ctyread.Attr(d.had(c, seen), attr)), []cty.Value(nil)
	if o := d.present(c, seen); o != nil {
		shown = ctyread.List(ctyread.Attr(o.Attrs, attr))
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
		was := d.stayOf(had, shown, network, i)
		ip, problem := d.addressIn(c, book, ctyread.Text(e, "address"), was)
		if problem == nil && d.scope[c.Address] && was.shown != ip {
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

// stay holds the addresses of a VM that count when it is to be in a network. Each is zero if there is none.
type stay struct {
	shown    netip.Addr // that it has there, as the system shows it
	recorded netip.Addr // that it has there by its record
	place    netip.Addr // of its interface in the same place, which is in another network
}

// stayOf returns the addresses of a VM for its interface at a place, by the interfaces that it had and those that the system shows.
func (d *differ) stayOf(had, shown []cty.Value, network spec.Address, place int) stay {
	in := func(all []cty.Value) netip.Addr {
		i := slices.IndexFunc(all, func(e cty.Value) bool { return d.isNetwork(e, network) })
		if i < 0 {
			return netip.Addr{}
		}
		return addressOrNone(all[i], "address")
	}
	was := stay{shown: in(shown), recorded: in(had)}
	if place < len(had) {
		was.place = addressOrNone(had[place], "address")
	}
	return was
}

// keep lets a VM keep the address that it has in a network: the recorded one unless somebody else has it, else the one that the
// system shows there, whoever else has that. false: it has none that the network has.
func (b *book) keep(vm spec.Address, was stay) (netip.Addr, bool) {
	switch {
	case was.recorded != was.shown && b.Keep(vm.String(), was.recorded):
		return was.recorded, true
	case was.shown.IsValid() && b.Fits(was.shown):
		b.Hold(was.shown, vm.String())
		return was.shown, true
	}
	return netip.Addr{}, false
}

// isNetwork reports whether an interface is in a network, whatever that was called before.
func (d *differ) isNetwork(e cty.Value, network spec.Address) bool {
	a, err := spec.ParseAddress(ctyread.Text(e, "network"))
	return err == nil && (destination(d.config, a) == network || slices.Contains(d.state.Records[network].Was, a))
}

// addressIn returns the address of a VM in a network: that of its block, or a chosen one. An address that cannot be had is a problem.
func (d *differ) addressIn(c *Change, b *book, said string, was stay) (netip.Addr, *Block) {
	if literal, err := netip.ParseAddr(said); err == nil {
		if b.Fits(literal) {
			return literal, d.unreadHolder(c, b.network, literal)
		}
		return literal, &Block{Cause: CauseAddress, Problem: providers.Refuse(
			fmt.Sprintf("its address %s cannot be used in %s, which is %s", literal, b.network, b.Prefix),
			providers.Say("write another address into the block of "+c.Address.String()+", or \"auto\""))}
	}
	if ip, ok := b.keep(c.Address, was); ok {
		return ip, nil
	}
	if !d.scope[c.Address] { // it is not made now
		return netip.Addr{}, nil
	}
	if ip, ok := b.Choose(c.Address.String(), was.place); ok {
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

// withoutAddress blocks a change for which no address could be chosen.
func (d *differ) withoutAddress(c *Change) {
	if c.unchosen != nil && c.Blocked == nil && !d.isPower() {
		c.Blocked = c.unchosen
	}
}
