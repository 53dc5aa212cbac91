package search

import "slices"

// foundPrefix begins the names of objects that others made and that imports take over.
const foundPrefix = "found-"

// editKind is one way to change a spec. It reports whether it did.
type editKind struct {
	class string
	edit  func(*drawing) bool
}

// editTable has every way in which the search changes a spec.
var editTable = []editKind{
	{"cpus", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.cpus = 3 - v.cpus })
	}},
	{"command line", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.cmdline, v.source = word(d.number(2, "word")), "" })
	}},
	{"reference", func(d *drawing) bool {
		a, b, ok := d.twoVMs(nil)
		return ok && d.change(a, func(v *vm) { v.source, v.attr = b, d.pick(vmAttrs, "attribute") })
	}},
	{"running", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.running = !v.running })
	}},
	{"add a vm", func(d *drawing) bool {
		label := d.pick(vmLabels, "label")
		if _, there := d.m.vms[label]; there {
			return false
		}
		d.m.vms[label] = vm{cpus: 1, running: true}
		return true
	}},
	{"drop a vm", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		if ok {
			d.drop(label)
		}
		return ok
	}},
	{"add a disk", func(d *drawing) bool {
		label := d.pick(diskLabels, "label")
		if _, there := d.m.disks[label]; there {
			return false
		}
		d.m.disks[label] = disk{size: 1, format: d.pick(formats(), "format")}
		return true
	}},
	{"drop a disk", func(d *drawing) bool {
		label, ok := d.diskLabel(nil)
		if ok {
			d.detach(label)
			delete(d.m.disks, label)
		}
		return ok
	}},
	{"grow a disk", func(d *drawing) bool {
		label, ok := d.diskLabel(nil)
		if ok {
			x := d.m.disks[label]
			x.size++
			d.m.disks[label] = x
		}
		return ok
	}},
	{"replace a disk", func(d *drawing) bool {
		label, ok := d.diskLabel(nil)
		if ok {
			d.otherFormat(label)
		}
		return ok
	}},
	{"replaced disk in use", func(d *drawing) bool {
		label, ok := d.diskLabel(func(x string) bool { return d.m.user(x) != "" })
		if ok {
			d.otherFormat(label)
		}
		return ok
	}},
	{"replaced disk leaves", func(d *drawing) bool { // 1a
		label, ok := d.diskLabel(func(x string) bool { return single(d.m.vms[d.m.user(x)]) && d.m.user(x) != "" })
		if ok {
			d.otherFormat(label)
			d.detach(label)
		}
		return ok
	}},
	{"replaced disk changes hands", func(d *drawing) bool { // 1b
		to, ok := d.vmLabel("to", single)
		label, disk := d.diskLabel(func(x string) bool { return d.m.user(x) != "" && d.m.user(x) != to })
		if !ok || !disk || !single(d.m.vms[d.m.user(label)]) {
			return false
		}
		d.otherFormat(label)
		d.detach(label)
		return d.change(to, func(v *vm) { v.disks = append(v.disks, label) })
	}},
	{"attach a disk", func(d *drawing) bool {
		to, ok := d.vmLabel("to", single)
		label, disk := d.diskLabel(func(x string) bool { return d.m.user(x) == "" })
		return ok && disk && d.change(to, func(v *vm) { v.disks = append(v.disks, label) })
	}},
	{"detach a disk", func(d *drawing) bool {
		label, ok := d.diskLabel(func(x string) bool { return d.m.user(x) != "" })
		if ok {
			d.detach(label)
		}
		return ok
	}},
	{"disk changes hands", func(d *drawing) bool {
		to, ok := d.vmLabel("to", single)
		label, disk := d.diskLabel(func(x string) bool { return d.m.user(x) != "" && d.m.user(x) != to })
		if !ok || !disk {
			return false
		}
		d.detach(label)
		return d.change(to, func(v *vm) { v.disks = append(v.disks, label) })
	}},
	{"disk goes to what it waits for", func(d *drawing) bool { // 1c
		from, ok := d.vmLabel("from", func(v vm) bool { return hasDisk(v) && len(v.after) > 0 })
		if !ok {
			return false
		}
		v := d.m.vms[from]
		disk, to := v.disks[0], v.after[0]
		if !single(d.m.vms[to]) {
			return false
		}
		d.detach(disk)
		return d.change(to, func(v *vm) { v.disks = append(v.disks, disk) })
	}},
	{"disk swap", func(d *drawing) bool { // 1d
		a, b, ok := d.twoVMs(hasDisk)
		if !ok {
			return false
		}
		one, other := d.m.vms[a].disks, d.m.vms[b].disks
		d.change(a, func(v *vm) { v.disks = other })
		return d.change(b, func(v *vm) { v.disks = one })
	}},
	{"disk swap within a for_each", func(d *drawing) bool { // 1d
		label, ok := d.vmLabel("block", hasSeveral)
		return ok && d.change(label, func(v *vm) {
			v.byKey[v.keys[0]], v.byKey[v.keys[1]] = v.byKey[v.keys[1]], v.byKey[v.keys[0]]
		})
	}},
	{"for_each", func(d *drawing) bool {
		label := d.pick(vmLabels, "label")
		if _, there := d.m.vms[label]; there {
			return false
		}
		v := vm{cpus: 1, running: true, keys: []string{"k1", "k2"}}
		if free := d.unused(); len(free) >= 2 && d.number(3, "with disks") > 1 {
			v.byKey = map[string]string{"k1": free[0], "k2": free[1]}
		}
		d.m.vms[label] = v
		return true
	}},
	{"key", func(d *drawing) bool {
		label, ok := d.vmLabel("block", func(v vm) bool { return v.keys != nil && v.byKey == nil })
		return ok && d.change(label, func(v *vm) {
			if i := slices.Index(v.keys, "k3"); i >= 0 {
				v.keys = slices.Delete(v.keys, i, i+1)
				return
			}
			v.keys = append(v.keys, "k3")
		})
	}},
	{"rollout", func(d *drawing) bool {
		label, ok := d.vmLabel("block", func(v vm) bool { return v.keys != nil })
		return ok && d.change(label, func(v *vm) { v.atOnce = d.number(2, "at once") })
	}},
	{"name", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", single)
		return ok && d.change(label, func(v *vm) { v.name = d.pick(vmNames, "name") })
	}},
	{"no name", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", isNamed)
		return ok && d.change(label, func(v *vm) { v.name = "" })
	}},
	{"name swap", func(d *drawing) bool { // 1e
		a, b, ok := d.twoVMs(isNamed)
		if !ok {
			return false
		}
		one, other := d.m.vms[a].name, d.m.vms[b].name
		d.change(a, func(v *vm) { v.name = other })
		return d.change(b, func(v *vm) { v.name = one })
	}},
	{"port", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", single)
		return ok && d.change(label, func(v *vm) { v.port = ports[d.number(len(ports), "port")-1] })
	}},
	{"port of another address", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", func(v vm) bool { return v.port != 0 })
		return ok && d.change(label, func(v *vm) { v.ip = d.pick([]string{"", everyAddress, "127.0.0.2"}, "address") })
	}},
	{"port split", func(d *drawing) bool {
		a, b, ok := d.twoVMs(single)
		c, another := d.vmLabel("third", func(v vm) bool { return single(v) && v.port > 0 && v.listens() == everyAddress })
		if !ok || !another || a == c || b == c {
			return false
		}
		port := d.m.vms[c].port
		d.change(c, func(v *vm) { v.port, v.ip = 0, "" })
		d.change(a, func(v *vm) { v.port, v.ip = port, "" })
		return d.change(b, func(v *vm) { v.port, v.ip = port, "127.0.0.2" })
	}},
	{"port swap", func(d *drawing) bool {
		a, b, ok := d.twoVMs(func(v vm) bool { return v.port != 0 })
		if !ok {
			return false
		}
		one, other := d.m.vms[a].port, d.m.vms[b].port
		at, otherAt := d.m.vms[a].ip, d.m.vms[b].ip
		d.change(a, func(v *vm) { v.port, v.ip = other, otherAt })
		return d.change(b, func(v *vm) { v.port, v.ip = one, at })
	}},
	{"port that another got", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", single)
		got := d.gotPorts()
		if !ok || len(got) == 0 {
			return false
		}
		return d.change(label, func(v *vm) { v.port = got[below(d.t, len(got), "port")] })
	}},
	{"depends_on", func(d *drawing) bool {
		a, b, ok := d.twoVMs(nil)
		return ok && !slices.Contains(d.m.vms[a].after, b) && d.change(a, func(v *vm) { v.after = append(v.after, b) })
	}},
	{"no depends_on", func(d *drawing) bool {
		a, ok := d.vmLabel("vm", func(v vm) bool { return len(v.after) > 0 })
		return ok && d.change(a, func(v *vm) { v.after = v.after[1:] })
	}},
	{"turned depends_on", func(d *drawing) bool { // 1h
		a, ok := d.vmLabel("vm", func(v vm) bool { return len(v.after) > 0 })
		if !ok {
			return false
		}
		b := d.m.vms[a].after[0]
		d.change(a, func(v *vm) { v.after = v.after[1:] })
		return d.change(b, func(v *vm) { v.after = append(v.after, a) })
	}},
	{"moved", func(d *drawing) bool {
		from, ok := d.vmLabel("from", nil)
		return ok && d.moveTo(from, d.pick(vmLabels, "to"))
	}},
	{"move with rename", func(d *drawing) bool {
		from, ok := d.vmLabel("from", single)
		to := d.pick(vmLabels, "to")
		return ok && d.moveTo(from, to) && d.change(to, func(v *vm) { v.name = d.pick(vmNames, "name") })
	}},
	{"move with successor", func(d *drawing) bool { // 1g
		from, ok := d.vmLabel("from", single)
		to, next := d.pick(vmLabels, "to"), d.pick(vmLabels, "successor")
		if _, taken := d.m.vms[next]; !ok || taken || next == to || next == from || !d.moveTo(from, to) {
			return false
		}
		old := d.m.vms[to].name
		if old == "" {
			old = project.Name + "." + from
		}
		d.change(to, func(v *vm) { v.name = d.pick(vmNames, "name") })
		d.m.vms[next] = vm{cpus: 1, running: true, name: old}
		return true
	}},
	{"state mv", func(d *drawing) bool { // 1f
		from, ok := d.vmLabel("from", single)
		to := d.pick(vmLabels, "to")
		if _, there := d.m.vms[to]; !ok || there || len(d.moves) > 0 || len(d.m.moved) > 0 {
			return false
		}
		d.moves = append(d.moves, [2]string{"vm." + from, "vm." + to})
		return true
	}},
	{"removed", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		if !ok || len(d.m.moved) > 0 || len(d.moves) > 0 {
			return false
		}
		d.drop(label)
		d.m.removed = append(d.m.removed, "vm."+label)
		return true
	}},
	{"removed and destroyed", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		if !ok || len(d.m.moved) > 0 || len(d.moves) > 0 {
			return false
		}
		d.drop(label)
		d.m.ended = append(d.m.ended, "vm."+label)
		return true
	}},
	{"import", func(d *drawing) bool {
		label := d.pick(vmLabels, "label")
		if _, there := d.m.vms[label]; there || len(d.m.imports) > 0 || d.has("vm."+label) || slices.Contains(d.m.removed, "vm."+label) || slices.Contains(d.m.ended, "vm."+label) {
			return false
		}
		d.m.vms[label] = vm{cpus: 1, name: foundPrefix + label, running: d.number(2, "running") == 1}
		d.m.imports = append(d.m.imports, [2]string{"vm." + label, foundPrefix + label})
		return true
	}},
	{"trigger", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.trigger = word(d.number(2, "trigger")) })
	}},
	{"no wait", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.unready = !v.unready })
	}},
	{"ignored", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.strict && d.change(label, func(v *vm) { v.ignores = !v.ignores })
	}},
	{"ceiling", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.strict && d.change(label, func(v *vm) { v.ceiling = d.pick([]string{"live", "restart"}, "ceiling") })
	}},
	{"prevent_destroy", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.strict && d.change(label, func(v *vm) { v.keep = !v.keep })
	}},
	{"conditions", func(d *drawing) bool {
		label, ok := d.vmLabel("vm", nil)
		return ok && d.change(label, func(v *vm) { v.rules, v.asks, v.asked = !v.rules, "", "" })
	}},
	{"condition on another vm", func(d *drawing) bool {
		a, b, ok := d.twoVMs(nil)
		return ok && d.change(a, func(v *vm) { v.rules, v.asks, v.asked = true, b, d.pick(vmAttrs, "attribute") })
	}},
	{"prevent_destroy of a disk", func(d *drawing) bool {
		label, ok := d.diskLabel(nil)
		if ok && d.strict {
			x := d.m.disks[label]
			x.keep = !x.keep
			d.m.disks[label] = x
		}
		return ok && d.strict
	}},
}

// unused lists the disks that no vm has.
func (d *drawing) unused() []string {
	var all []string
	for _, label := range diskLabels {
		if _, there := d.m.disks[label]; there && d.m.user(label) == "" {
			all = append(all, label)
		}
	}
	return all
}
