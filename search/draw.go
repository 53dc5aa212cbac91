package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"vmctl/spec"
)

// drawing draws edits of a model, and notes the class of each.
type drawing struct {
	t       *rapid.T
	m       model
	moves   [][2]string // of records: `state mv`
	classes []string
	strict  bool         // policies that forbid something are drawn, too
	was     []string     // addresses of VMs that have a record
	got     func() []int // the host ports that the kernel chose for VMs that run; nil: nobody knows
}

// gotPorts returns the host ports that the kernel chose for VMs that run.
func (d *drawing) gotPorts() []int {
	if d.got == nil {
		return nil
	}
	return d.got()
}

// has reports whether an address has a record.
func (d *drawing) has(address string) bool { return slices.Contains(d.was, address) }

// drawing returns a drawing with an empty model for the host. One case in three has boxes: each look
// into a guest runs a program.
func (b *harness) drawing() *drawing {
	d := &drawing{t: b.draw, m: modelFor(b.host)}
	d.m.boxless = d.m.boxless || below(b.draw, 3, "boxless") > 0
	return d
}

// below draws a number below limit, each about as likely: rapid's own generators
// prefer the first by far.
func below(t *rapid.T, limit int, what string) int {
	n := 0
	for bit := 1; bit < 4*limit; bit <<= 1 {
		if rapid.Bool().Draw(t, what) {
			n |= bit
		}
	}
	return n % limit
}

func (d *drawing) pick(from []string, what string) string { return from[below(d.t, len(from), what)] }

// edits makes so many edits of the model. Each leaves a valid spec, or changes nothing.
func (d *drawing) edits(count int) {
	for try := 0; try < 6*count && count > 0; try++ {
		all := d.m.allEdits()
		if !d.m.itemless && below(d.t, 3, "in an engine") > 0 {
			all = itemEditTable
		}
		e := all[below(d.t, len(all), "edit")]
		if d.hasDesks() && below(d.t, 6, "around a desk") == 0 { // few edits end what is around other objects
			e = aroundDesk
		}
		before, moves := d.m.clone(), slices.Clone(d.moves)
		if !e.edit(d) || !d.m.valid() {
			d.m, d.moves = before, moves
			continue
		}
		d.classes = append(d.classes, e.class)
		count--
	}
}

func (d *drawing) hasDesks() bool {
	return len(d.m.boxLabels(func(label string, _ boxBlock) bool { return isDesk(label) })) > 0
}

// base draws a spec.
func (d *drawing) base() {
	for _, label := range diskLabels {
		if below(d.t, 4, "disk "+label) > 0 {
			d.m.disks[label] = disk{size: 1, format: formats()[0]}
		}
	}
	for i, label := range vmLabels {
		if below(d.t, 3, "vm "+label) == 0 {
			continue
		}
		v := vm{cpus: 1, running: below(d.t, 4, "off") > 0}
		if free := d.unused(); len(free) > 0 && below(d.t, 2, "attached") > 0 {
			v.disks = free[:1]
		}
		if i < len(vmNames) && below(d.t, 3, "named") == 0 {
			v.name = vmNames[i]
		}
		if i < len(ports) && below(d.t, 3, "forwarded") > 0 {
			v.port = ports[i]
			if below(d.t, 4, "every address") == 0 {
				v.ip = everyAddress
			}
		}
		if other, ok := d.vmLabel("dependency", nil); ok && below(d.t, 3, "depends") == 0 {
			v.after = []string{other}
		}
		d.m.vms[label] = v
	}
	if free := d.unused(); len(free) >= 2 && below(d.t, 4, "for_each") == 0 {
		d.m.vms["e"] = vm{cpus: 1, running: true, keys: []string{"k1", "k2"}, byKey: map[string]string{"k1": free[0], "k2": free[1]}}
		for label, v := range d.m.vms {
			if v.source == "e" {
				v.source = ""
			}
			if v.asks == "e" {
				v.asks = ""
			}
			d.m.vms[label] = v
		}
	}
	if !d.m.boxless {
		d.baseBoxes()
	}
	if !d.m.itemless {
		d.baseItems()
	}
	d.edits(below(d.t, 5, "base edits"))
	d.m, d.moves, d.classes = d.m.settled(), nil, nil
}

// baseBoxes draws what is inside of VMs.
func (d *drawing) baseBoxes() {
	for _, label := range boxLabels {
		in, ok := d.place()
		if !ok || below(d.t, 3, "box "+label) == 0 {
			continue
		}
		d.m.boxes[label] = boxBlock{in: in, name: label, open: below(d.t, 5, "open") > 0, content: word(1)}
		if !d.m.valid() {
			delete(d.m.boxes, label)
		}
	}
	for _, label := range deskLabels {
		if in, ok := d.vmLabel("desk in", single); ok && below(d.t, 2, "desk "+label) == 0 {
			d.m.boxes[label] = boxBlock{in: "vm." + in, name: label, open: true}
		}
	}
}

// vmLabel picks a vm of the model.
func (d *drawing) vmLabel(what string, such func(vm) bool) (string, bool) {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(d.m.vms)) {
		if such == nil || such(d.m.vms[label]) {
			all = append(all, label)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, what), true
}

// twoVMs picks two different vms.
func (d *drawing) twoVMs(such func(vm) bool) (a, b string, ok bool) {
	if a, ok = d.vmLabel("one", such); !ok {
		return "", "", false
	}
	b, ok = d.vmLabel("other", such)
	return a, b, ok && a != b
}

func (d *drawing) change(label string, change func(*vm)) bool {
	v := d.m.vms[label]
	change(&v)
	d.m.vms[label] = v
	return true
}

// user returns the label of the vm block that has a disk, "" if none has.
func (m model) user(disk string) string {
	for _, label := range slices.Sorted(maps.Keys(m.vms)) {
		if slices.Contains(m.vms[label].allDisks(), disk) {
			return label
		}
	}
	return ""
}

func single(v vm) bool     { return v.keys == nil }
func hasDisk(v vm) bool    { return len(v.disks) > 0 }
func isNamed(v vm) bool    { return v.name != "" }
func hasSeveral(v vm) bool { return len(v.keys) > 1 && v.byKey != nil }

// detach takes a disk off every vm block that has it.
func (d *drawing) detach(disk string) {
	for label, v := range d.m.vms {
		v.disks = slices.DeleteFunc(v.disks, func(x string) bool { return x == disk })
		d.m.vms[label] = v
	}
}

func (d *drawing) diskLabel(such func(string) bool) (string, bool) {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(d.m.disks)) {
		if such == nil || such(label) {
			all = append(all, label)
		}
	}
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, "disk"), true
}

// otherFormat gives a disk another format, so that it is replaced.
func (d *drawing) otherFormat(label string) {
	x := d.m.disks[label]
	all := formats()
	x.format = all[1-slices.Index(all, x.format)]
	d.m.disks[label] = x
}

// rename gives a vm block another label, wherever it is named.
func (d *drawing) rename(from, to string) bool {
	v, ok := d.m.vms[from]
	if _, taken := d.m.vms[to]; !ok || taken || from == to {
		return false
	}
	for _, move := range d.m.moved { // one move of a block is enough
		if slices.Contains(move[:], "vm."+from) || slices.Contains(move[:], "vm."+to) {
			return false
		}
	}
	if slices.Contains(d.m.removed, "vm."+to) {
		return false
	}
	delete(d.m.vms, from)
	d.m.vms[to] = v
	for label, o := range d.m.vms {
		for i := range o.after {
			if o.after[i] == from {
				o.after[i] = to
			}
		}
		if o.source == from {
			o.source = to
		}
		if o.asks == from {
			o.asks = to
		}
		d.m.vms[label] = o
	}
	for label, x := range d.m.items {
		if itemKind(label) == spec.Engine && x.in == from {
			x.in = to
		}
		d.m.items[label] = x
	}
	for label, x := range d.m.boxes {
		if x.in == "vm."+from {
			x.in = "vm." + to
		}
		d.m.boxes[label] = x
	}
	return true
}

func (d *drawing) moveTo(from, to string) bool {
	if !d.rename(from, to) {
		return false
	}
	d.m.moved = append(d.m.moved, [2]string{"vm." + from, "vm." + to})
	return true
}

// drop removes a vm block, with what refers to it.
func (d *drawing) drop(label string) {
	delete(d.m.vms, label)
	for other, v := range d.m.vms {
		v.after = slices.DeleteFunc(v.after, func(x string) bool { return x == label })
		if v.source == label {
			v.source, v.attr = "", ""
		}
		if v.asks == label {
			v.asks, v.asked = "", ""
		}
		d.m.vms[other] = v
	}
	for _, engine := range d.m.itemsOf(spec.Engine, func(x item) bool { return x.in == label }) {
		d.dropItem(engine)
	}
	for _, inner := range d.m.boxLabels(func(_ string, x boxBlock) bool { return x.in == "vm."+label }) {
		d.dropBox(inner)
	}
}

func (d *drawing) number(most int, what string) int { return 1 + below(d.t, most, what) }

func word(n int) string { return fmt.Sprintf("word%d", n) }

// formats lists the formats that a disk can have.
func formats() []string {
	a, _ := spec.AttrAt(spec.Disk, "format")
	return a.OneOf
}

// RandomEdit is an edit of a spec, for tests that carry it out by other means.
type RandomEdit struct {
	Before, After string      // spec files
	Moves         [][2]string // of records, in between: `state mv`
	Addresses     []string    // of VMs and disks in After
	Removed       []string    // addresses that After lets go of
	Classes       []string    // of edits
}

// Draw draws a spec and some edits of it. Both spec files begin with a header.
func Draw(t *rapid.T, header string) RandomEdit {
	d := &drawing{t: t, m: newModel()}
	d.m.boxless, d.m.itemless = true, true // the caller has only VMs and disks
	d.base()
	out := RandomEdit{Before: d.m.hcl(header)}
	recorded := d.m.instances()
	d.edits(1 + below(t, 3, "edits"))
	out.After, out.Moves, out.Removed, out.Classes = d.m.hcl(header), d.moves, d.m.removed, d.classes
	out.Moves = slices.DeleteFunc(out.Moves, func(m [2]string) bool { // there has to be something to move, and room for it
		_, from := recorded[m[0]]
		_, to := recorded[m[1]]
		return !from || to
	})
	out.Addresses = slices.Collect(maps.Keys(d.m.instances()))
	for label := range d.m.disks {
		out.Addresses = append(out.Addresses, "disk."+label)
	}
	slices.Sort(out.Addresses)
	return out
}

// String returns the edit as text for the report of a failure.
func (d RandomEdit) String() string {
	return fmt.Sprintf("from\n%s\nto\n%s\nafter moving %v", d.Before, strings.TrimSpace(d.After), d.Moves)
}
