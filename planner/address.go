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

// withoutAddress blocks a change for which no address could be chosen.
func (d *differ) withoutAddress(c *Change) {
	if c.unchosen != nil && c.Blocked == nil && !d.isPower() {
		c.Blocked = c.unchosen
	}
}
