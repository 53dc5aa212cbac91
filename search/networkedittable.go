package search

import "slices"

// networkEditTable has every way in which the search changes the networks of VMs and who is in them.
var networkEditTable = []editKind{
	{"add a network", func(d *drawing) bool {
		label := d.pick(networkLabels, "label")
		if _, there := d.m.networks[label]; there {
			return false
		}
		d.m.networks[label] = network{prefix: d.pick(prefixes, "prefix"), avoids: below(d.t, 3, "avoids") == 0}
		return true
	}},
	{"drop a network", func(d *drawing) bool {
		label, ok := d.networkLabel()
		if ok {
			d.dropNetwork(label)
		}
		return ok
	}},
	{"network for another one", func(d *drawing) bool { // whoever was in the one is in the other
		from, ok := d.networkLabel()
		to := d.pick(networkLabels, "label")
		if _, there := d.m.networks[to]; there || !ok {
			return false
		}
		d.m.networks[to] = d.m.networks[from]
		for _, label := range d.placedIn(from) {
			d.change(label, func(v *vm) {
				v.places = slices.Clone(v.places)
				for i := range v.places {
					if v.places[i].network == from {
						v.places[i].network = to
					}
				}
			})
		}
		d.dropNetwork(from)
		return true
	}},
	{"prefix of a network", func(d *drawing) bool {
		return d.changeNetwork(func(n *network) { n.prefix = d.pick(prefixes, "prefix") })
	}},
	{"internal network", func(d *drawing) bool {
		return d.changeNetwork(func(n *network) { n.internal = !n.internal })
	}},
	{"network that avoids others", func(d *drawing) bool {
		return d.changeNetwork(func(n *network) { n.avoids = !n.avoids })
	}},
	{"last address", func(d *drawing) bool {
		return d.changeNetwork(func(n *network) { n.last = []int{0, 4, 5}[below(d.t, 3, "last")] })
	}},
	{"reserved address", func(d *drawing) bool {
		return d.changeNetwork(func(n *network) { n.reserved = []int{0, 2, 3, 4}[below(d.t, 4, "reserved")] })
	}},
	{"vm joins a network", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		in, there := d.networkLabel()
		return ok && there && d.change(label, func(v *vm) { v.places = append(slices.Clone(v.places), place{network: in}) })
	}},
	{"vm leaves a network", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", isPlaced)
		return ok && d.change(label, func(v *vm) { v.places = v.places[1:] })
	}},
	{"vm goes to another network", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", isPlaced)
		to, there := d.networkLabel()
		return ok && there && d.change(label, func(v *vm) { v.places = append([]place{{network: to}}, v.places[1:]...) })
	}},
	{"interfaces in another order", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", func(v vm) bool { return len(v.places) > 1 })
		return ok && d.change(label, func(v *vm) { v.places = []place{v.places[1], v.places[0]} })
	}},
	{"address by its name", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", isPlaced)
		return ok && d.change(label, func(v *vm) {
			v.places = slices.Clone(v.places)
			v.places[0].number = 1 + d.number(5, "address")
		})
	}},
	{"address by itself", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", func(v vm) bool { return isPlaced(v) && v.places[0].number != 0 })
		return ok && d.change(label, func(v *vm) {
			v.places = slices.Clone(v.places)
			v.places[0].number = 0
		})
	}},
	{"address swap", func(d *drawing) bool {
		a, b, ok := d.twoVMs(func(v vm) bool { return isPlaced(v) && single(v) })
		if !ok {
			return false
		}
		one, other := d.m.vms[a].places, d.m.vms[b].places
		d.change(a, func(v *vm) { v.places = other })
		return d.change(b, func(v *vm) { v.places = one })
	}},
	{"vm takes the place of another", func(d *drawing) bool {
		from, ok := d.vmLabel("from", isPlaced)
		to, there := d.vmLabel("to", single)
		if !ok || !there || from == to {
			return false
		}
		places := d.m.vms[from].places
		d.drop(from)
		return d.change(to, func(v *vm) { v.places = places })
	}},
	{"prevent_destroy of a network", func(d *drawing) bool {
		return d.strict && d.changeNetwork(func(n *network) { n.keep = !n.keep })
	}},
}
