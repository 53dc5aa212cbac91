package search

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/executor"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Places holds the networks of VMs in a system, and who has which address in them.
type Places struct {
	Networks map[providers.ID]netip.Prefix
	Holders  []Holder // VMs, on or off, and others
}

// Holder has an address in a network.
type Holder struct {
	ID      providers.ID // of a VM; "": it is something else
	Name    string
	Network providers.ID
	IP      netip.Addr
}

// stay identifies a VM in a network.
type stay struct {
	vm      spec.Address
	network providers.ID
}

// The laws of addresses. Names like those of the other laws, which are numbers.
const (
	lawTwice = "10" // no two have one address of one network
	lawStays = "11" // a VM keeps the address that vmctl chose, whatever is edited, restarted or killed
	lawRange = "12" // no address is chosen that is reserved or outside of the range
	lawFree  = "13" // an address that nobody has is given away
	lawAvoid = "14" // a network that avoids others is made beside them
)

// places returns who has which address.
func (b *harness) places() Places {
	b.t.Helper()
	if b.host.Places == nil {
		return Places{}
	}
	all, err := b.host.Places(filepath.Join(b.dir, "world"))
	b.must(err)
	return all
}

// twice lists the addresses that several have.
func (p Places) twice() []string {
	by := map[Holder][]string{}
	for _, h := range p.Holders {
		key := Holder{Network: h.Network, IP: h.IP}
		if !slices.Contains(by[key], h.Name) {
			by[key] = append(by[key], h.Name)
		}
	}
	var all []string
	for key, names := range by {
		if len(names) > 1 {
			slices.Sort(names)
			all = append(all, fmt.Sprintf("%s of %s: %s", key.IP, key.Network, strings.Join(names, ", ")))
		}
	}
	slices.Sort(all)
	return all
}

// checkTwice checks, while a run is at work and after it, that it gave no address to two.
func (b *harness) checkTwice(before Places) {
	b.t.Helper()
	was := before.twice()
	for _, one := range b.places().twice() {
		if !slices.Contains(was, one) {
			b.failf(lawTwice, "two have one address: %s", one)
		}
	}
}

// isChange reports whether an event ends a step, which has changed the world perhaps.
func isChange(e executor.Event) bool {
	return e.Kind == executor.StepDone || e.Kind == executor.StepFailed || e.Kind == executor.StepWarned
}

// addressesOf returns the addresses of the VMs of the model in its networks, by their records.
func (b *harness) addressesOf(p Places) map[stay]netip.Addr {
	all := map[stay]netip.Addr{}
	for a, r := range b.store.snapshot.Records {
		for _, h := range p.Holders {
			if a.Kind == spec.VM && h.ID != "" && r.ID == string(h.ID) {
				all[stay{a, h.Network}] = h.IP
			}
		}
	}
	return all
}

// networkOf returns the ID of the network of a label, "" if it has no record.
func (b *harness) networkOf(label string) providers.ID {
	return providers.ID(b.store.snapshot.Records[spec.Address{Kind: spec.Network, Name: label}].ID)
}

// checkPlaces checks after a run who has which address: laws 10, 11, 12 and 14.
func (b *harness) checkPlaces(before Places, recorded *state.Snapshot) {
	b.t.Helper()
	if b.host.Places == nil {
		return
	}
	b.checkTwice(before)
	now := b.places()
	has, others := b.addressesOf(now), now.othersThan(b)
	for s, ip := range has {
		v := b.model.vms[s.vm.Name]
		i := slices.IndexFunc(v.places, func(p place) bool { return b.networkOf(p.network) == s.network })
		if i < 0 || v.places[i].number != 0 {
			continue
		}
		was, known := b.had[s]
		switch {
		case known && was != ip && !others[Holder{Network: s.network, IP: was}]:
			b.failf(lawStays, "%s had %s in %s, and has %s", s.vm, was, v.places[i].network, ip)
		case known && was == ip:
		default:
			b.checkRange(s, b.model.networks[v.places[i].network], now.Networks[s.network], ip)
		}
	}
	for id, prefix := range now.Networks {
		if _, there := before.Networks[id]; !there {
			b.checkAvoids(id, prefix, now, recorded)
		}
	}
	b.note(has)
}

// othersThan returns the addresses that are held by what has no record.
func (p Places) othersThan(b *harness) map[Holder]bool {
	ours := map[providers.ID]bool{}
	for _, r := range b.store.snapshot.Records {
		ours[providers.ID(r.ID)] = true
	}
	all := map[Holder]bool{}
	for _, h := range p.Holders {
		if !ours[h.ID] {
			all[Holder{Network: h.Network, IP: h.IP}] = true
		}
	}
	return all
}

// checkRange checks that an address that was chosen may be chosen.
func (b *harness) checkRange(s stay, n network, prefix netip.Prefix, ip netip.Addr) {
	b.t.Helper()
	if slices.Contains(b.free(n, prefix), ip) {
		return
	}
	b.failf(lawRange, "%s got %s in %s, of which reserved is %d and the last one %d", s.vm, ip, prefix, n.reserved, n.last)
}

// free lists the addresses of a network that can be chosen, whoever has them.
func (b *harness) free(n network, prefix netip.Prefix) []netip.Addr {
	last := 1<<(32-prefix.Bits()) - 2
	if n.last != 0 {
		last = n.last
	}
	var all []netip.Addr
	for number := 2; number <= last; number++ {
		if number != n.reserved {
			all = append(all, addressAt(prefix, number))
		}
	}
	return all
}

// checkAvoids checks that a network that was made for the first time, and that avoids others, has no address of another one.
func (b *harness) checkAvoids(id providers.ID, prefix netip.Prefix, now Places, before *state.Snapshot) {
	b.t.Helper()
	for label, n := range b.model.networks {
		_, had := before.Records[spec.Address{Kind: spec.Network, Name: label}]
		if b.networkOf(label) != id || !n.avoids || had { // what was chosen once is kept
			continue
		}
		for other, p := range now.Networks {
			if other != id && p.Overlaps(prefix) {
				b.failf(lawAvoid, "network.%s got %s, and there is %s", label, prefix, p)
			}
		}
		for _, p := range b.host.Subnets {
			if p.Overlaps(prefix) {
				b.failf(lawAvoid, "network.%s got %s, and the host is in %s", label, prefix, p)
			}
		}
	}
}

// note remembers the addresses of VMs in networks as long as their blocks put them there.
func (b *harness) note(has map[stay]netip.Addr) {
	if b.had == nil {
		b.had = map[stay]netip.Addr{}
	}
	for s := range b.had {
		v, wanted := b.model.vms[s.vm.Name]
		if !wanted || !slices.ContainsFunc(v.places, func(p place) bool { return b.networkOf(p.network) == s.network }) {
			delete(b.had, s)
		}
	}
	for s, ip := range has {
		b.had[s] = ip
	}
}

// follow lets what is remembered of the VMs follow a block or a record that is moved.
func (b *harness) follow(from, to spec.Address) {
	moved := map[stay]netip.Addr{}
	for s, ip := range b.had {
		if s.vm == from || s.vm.Block() == from {
			s.vm.Name = to.Name
		}
		moved[s] = ip
	}
	b.had = moved
}

// checkExhausted checks that a VM for which no address was free could have none: law 13.
func (b *harness) checkExhausted(p *planner.Plan) {
	b.t.Helper()
	if b.host.Places == nil {
		return
	}
	now := b.places()
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Kind != spec.VM || c.Blocked == nil || c.Blocked.Cause != planner.CauseAddress {
			continue
		}
		for _, at := range b.model.vms[c.Address.Name].places {
			id := b.networkOf(at.network)
			prefix, there := now.Networks[id]
			if !there || !strings.Contains(c.Blocked.Error(), "no address of network."+at.network) {
				continue
			}
			taken := b.taken(p, at.network, id, now)
			for _, ip := range b.free(b.model.networks[at.network], prefix) {
				if !taken[ip] {
					b.failf(lawFree, "%s gets no address in %s, and nobody has %s", c.Address, at.network, ip)
				}
			}
		}
	}
}

// taken returns the addresses of a network that somebody has, is recorded with, asks for or is given by a plan.
func (b *harness) taken(p *planner.Plan, label string, id providers.ID, now Places) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for _, h := range now.Holders {
		all[h.IP] = all[h.IP] || h.Network == id
	}
	add := func(of spec.Address, values map[spec.Address][]netip.Addr) {
		for _, ip := range values[of] {
			all[ip] = true
		}
	}
	in := spec.Address{Kind: spec.Network, Name: label}
	for i := range p.Changes {
		add(in, interfacesOf(p.Changes[i].Change.Want))
	}
	for _, r := range b.store.snapshot.Records {
		if r.Kind == spec.VM {
			add(in, interfacesOf(r.Values))
		}
	}
	for _, v := range b.model.vms {
		for _, at := range v.places {
			if at.network == label && at.number != 0 {
				all[addressAt(now.Networks[id], at.number)] = true
			}
		}
	}
	return all
}

// interfacesOf returns the addresses that the attributes of a VM have, by the networks.
func interfacesOf(v cty.Value) map[spec.Address][]netip.Addr {
	all := map[spec.Address][]netip.Addr{}
	for _, e := range ctyread.List(ctyread.Attr(v, "network_interface")) {
		a, noNetwork := spec.ParseAddress(ctyread.Text(e, "network"))
		ip, noIP := netip.ParseAddr(ctyread.Text(e, "address"))
		if noNetwork == nil && noIP == nil {
			all[a] = append(all[a], ip)
		}
	}
	return all
}

// observedPlaces returns the interfaces of a VM, with * for an address that vmctl chooses.
func (b *harness) observedPlaces(o *providers.Object, a spec.Address) string {
	var all []string
	for _, e := range ctyread.List(ctyread.Attr(o.Attrs, "network_interface")) {
		label := strings.TrimPrefix(ctyread.Text(e, "network"), "network.")
		address := ctyread.Text(e, "address")
		if b.model.vms[a.Name].chosen(label) {
			address = "*"
		}
		all = append(all, label+" "+address)
	}
	return fmt.Sprint(all)
}
