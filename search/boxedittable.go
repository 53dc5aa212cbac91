package search

import (
	"slices"
	"strings"
)

// aroundDesk gives the VM around a desk another name, so that it is replaced.
var aroundDesk = editKind{"name of a vm with a desk", func(d *drawing) bool {
	label, ok := d.boxLabel("desk", func(label string, _ boxBlock) bool { return isDesk(label) })
	return ok && d.change(strings.TrimPrefix(d.m.boxes[label].in, "vm."), func(v *vm) { v.name = d.pick(vmNames, "name") })
}}

// boxEditTable has every way in which the search changes what is inside of VMs.
var boxEditTable = []editKind{
	{"add a box", func(d *drawing) bool {
		label := d.pick(boxLabels, "box")
		in, ok := d.place()
		if _, there := d.m.boxes[label]; there || !ok {
			return false
		}
		d.m.boxes[label] = boxBlock{in: in, name: label, open: below(d.t, 4, "open") > 0, content: word(d.number(2, "content"))}
		return true
	}},
	{"add a desk", func(d *drawing) bool {
		label := d.pick(deskLabels, "desk")
		in, ok := d.vmLabel("vm", single)
		if _, there := d.m.boxes[label]; there || !ok {
			return false
		}
		d.m.boxes[label] = boxBlock{in: "vm." + in, name: label, open: true}
		return true
	}},
	aroundDesk,
	{"drop a desk", func(d *drawing) bool {
		label, ok := d.boxLabel("desk", func(label string, _ boxBlock) bool { return isDesk(label) })
		if ok {
			d.dropBox(label)
		}
		return ok
	}},
	{"box in a box", func(d *drawing) bool {
		outer, ok := d.boxLabel("outer", nil)
		label := d.pick(boxLabels, "box")
		if _, there := d.m.boxes[label]; there || !ok {
			return false
		}
		d.m.boxes[label] = boxBlock{in: boxAddress(outer), name: label, open: true, content: word(d.number(2, "content"))}
		return true
	}},
	{"content of a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		return ok && d.changeBox(label, func(x *boxBlock) { x.content = word(d.number(3, "content")) })
	}},
	{"paint of a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		return ok && d.changeBox(label, func(x *boxBlock) { x.paint = word(d.number(3, "paint")) })
	}},
	{"open or close a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		return ok && d.changeBox(label, func(x *boxBlock) { x.open = !x.open })
	}},
	{"name of a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		return ok && d.changeBox(label, func(x *boxBlock) { x.name = d.pick(boxNames, "name") })
	}},
	{"boxes swap names", func(d *drawing) bool {
		one, ok := d.boxLabel("one", nil)
		other, two := d.boxLabel("other", func(label string, x boxBlock) bool { return label != one && x.in == d.m.boxes[one].in })
		if !ok || !two {
			return false
		}
		a, b := d.m.boxes[one].name, d.m.boxes[other].name
		d.changeBox(one, func(x *boxBlock) { x.name = b })
		return d.changeBox(other, func(x *boxBlock) { x.name = a })
	}},
	{"box moves", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		in, there := d.place()
		return ok && there && in != d.m.boxes[label].in && d.changeBox(label, func(x *boxBlock) { x.in = in })
	}},
	{"box after box", func(d *drawing) bool {
		one, ok := d.boxLabel("one", nil)
		other, two := d.boxLabel("other", func(label string, _ boxBlock) bool { return label != one })
		return ok && two && d.changeBox(one, func(x *boxBlock) { x.after = other })
	}},
	{"vm after box", func(d *drawing) bool {
		a, ok := d.vmLabel("vm", nil)
		if len(d.m.boxes) == 0 || !ok {
			return false
		}
		label := d.pick(append(d.m.boxLabels(nil), ""), "box")
		return label != d.m.vms[a].box && d.change(a, func(v *vm) { v.box = label })
	}},
	{"drop a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		if ok {
			d.dropBox(label)
		}
		return ok
	}},
	{"drop a box around others", func(d *drawing) bool { // these move out
		label, ok := d.boxLabel("box", func(label string, _ boxBlock) bool {
			return len(d.m.boxLabels(func(_ string, x boxBlock) bool { return x.in == boxAddress(label) })) > 0
		})
		if !ok {
			return false
		}
		for _, inner := range d.m.boxLabels(func(_ string, x boxBlock) bool { return x.in == boxAddress(label) }) {
			d.changeBox(inner, func(x *boxBlock) { x.in = d.m.boxes[label].in })
		}
		d.dropBox(label)
		return true
	}},
	{"prevent_destroy of a box", func(d *drawing) bool {
		label, ok := d.boxLabel("box", nil)
		return ok && d.strict && d.changeBox(label, func(x *boxBlock) { x.keep = !x.keep })
	}},
}

// allEdits returns every way in which the search changes a spec of a host.
func (m model) allEdits() []editKind {
	all := editTable
	if !m.boxless {
		all = slices.Concat(all, boxEditTable)
	}
	if !m.itemless {
		all = slices.Concat(all, itemEditTable)
	}
	return all
}
