package search

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"vmctl/spec"
)

// network is a network block of VMs. Its addresses are written as their places in its prefix.
type network struct {
	prefix   string
	last     int // allocation.last; 0: not written
	reserved int // one of allocation.reserved; 0: none
	internal bool
	avoids   bool // avoid_host_subnets
	keep     bool // prevent_destroy
}

// place is a network_interface block of a VM.
type place struct {
	network string // a label
	number  int    // the place of its address in the prefix; 0: auto
}

// addressAt returns the address at a place of a prefix.
func addressAt(prefix netip.Prefix, number int) netip.Addr {
	ip := prefix.Addr()
	for range number {
		ip = ip.Next()
	}
	return ip
}

func (n network) at(number int) string {
	return addressAt(netip.MustParsePrefix(n.prefix), number).String()
}

func (n network) write(b *strings.Builder, label, provider string) {
	fmt.Fprintf(b, "network %q {\n  provider = %s\n  cidr     = %q\n  internal = %t\n  avoid_host_subnets = %t\n", label, provider, n.prefix, n.internal, n.avoids)
	if n.last != 0 || n.reserved != 0 {
		b.WriteString("  allocation {\n")
		if n.last != 0 {
			fmt.Fprintf(b, "    last = %q\n", n.at(n.last))
		}
		if n.reserved != 0 {
			fmt.Fprintf(b, "    reserved = [%q]\n", n.at(n.reserved))
		}
		b.WriteString("  }\n")
	}
	writeLifecycle(b, lifecycle{keep: n.keep})
	b.WriteString("}\n")
}

// writePlaces writes the interfaces of a VM.
func (m model) writePlaces(b *strings.Builder, v vm) {
	for _, p := range v.places {
		address := spec.AutoIP
		if p.number != 0 {
			address = m.networks[p.network].at(p.number)
		}
		fmt.Fprintf(b, "  network_interface {\n    network = network.%s\n    address = %q\n  }\n", p.network, address)
	}
}

// networksAreValid reports whether the interfaces of VMs are in networks of the model, one in each, and no two ask for one address.
func (m model) networksAreValid() bool {
	asked := map[place]bool{}
	for _, v := range m.vms {
		in := map[string]bool{}
		for _, p := range v.places {
			n, there := m.networks[p.network]
			if !there || in[p.network] || asked[p] || p.number != 0 && (n.avoids || v.keys != nil) {
				return false
			}
			in[p.network], asked[p] = true, p.number != 0
		}
	}
	return len(m.networks) == 0 || !m.netless
}

// expectedPlaces returns the interfaces of a VM, with * for an address that vmctl chooses.
func (m model) expectedPlaces(v vm) string {
	var all []string
	for _, p := range v.places {
		address := "*"
		if p.number != 0 {
			address = m.networks[p.network].at(p.number)
		}
		all = append(all, p.network+" "+address)
	}
	return fmt.Sprint(all)
}

// expectedNetworks returns a line for each network, with * for a prefix that vmctl chooses.
func (m model) expectedNetworks() []string {
	var all []string
	for label, n := range m.networks {
		prefix := n.prefix
		if n.avoids {
			prefix = "*"
		}
		all = append(all, networkLine("network."+label, prefix, n.internal))
	}
	return all
}

func networkLine(address, prefix string, internal bool) string {
	return fmt.Sprintf("%s %s internal %t", address, prefix, internal)
}

// chosen reports whether vmctl chooses the address of a VM in a network.
func (v vm) chosen(network string) bool {
	return slices.Contains(v.places, place{network: network})
}

// networkLabel picks a network of the model.
func (d *drawing) networkLabel() (string, bool) {
	all := slices.Sorted(maps.Keys(d.m.networks))
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, "network"), true
}

func (d *drawing) changeNetwork(change func(*network)) bool {
	label, ok := d.networkLabel()
	if ok {
		n := d.m.networks[label]
		change(&n)
		d.m.networks[label] = n
	}
	return ok
}

// dropNetwork removes a network block, and the interfaces in it.
func (d *drawing) dropNetwork(label string) {
	delete(d.m.networks, label)
	for other, v := range d.m.vms {
		v.places = slices.DeleteFunc(slices.Clone(v.places), func(p place) bool { return p.network == label })
		d.m.vms[other] = v
	}
}

// placedIn returns the labels of the VMs in a network, sorted.
func (d *drawing) placedIn(network string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.m.vms)), func(label string) bool {
		return !slices.ContainsFunc(d.m.vms[label].places, func(p place) bool { return p.network == network })
	})
}

func isPlaced(v vm) bool { return len(v.places) > 0 }

// baseNetworks draws networks and who is in them.
func (d *drawing) baseNetworks() {
	for _, label := range networkLabels {
		if below(d.t, 4, "network "+label) > 0 {
			d.m.networks[label] = network{prefix: d.pick(prefixes, "prefix")}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(d.m.vms)) {
		if in, ok := d.networkLabel(); ok && below(d.t, 4, "placed") > 0 {
			d.change(label, func(v *vm) { v.places = []place{{network: in}} })
		}
	}
}
