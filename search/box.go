package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/providers/providertest/box"
	"vmctl/search/desk"
	"vmctl/spec"
)

// boxBlock is a box block: something inside of a VM or of another box. Its label says whether it is a desk, which is in a VM.
type boxBlock struct {
	in      string // address of the vm or the box around it
	name    string // no two in one place share it
	open    bool
	content string
	paint   string
	after   string // depends_on: the label of a box; "": none
	keep    bool   // prevent_destroy
}

// maxDepth is the number of boxes around each other in a VM, at most.
const maxDepth = 3

func boxAddress(label string) string { return string(kindOf(label)) + "." + label }

func isDesk(label string) bool { return slices.Contains(deskLabels, label) }

// kindOf returns the kind of a box or a desk.
func kindOf(label string) spec.Kind {
	if isDesk(label) {
		return desk.Kind
	}
	return box.Kind
}

// boxOf returns the label of a box or a desk, "" if an address is of another kind.
func boxOf(address string) string {
	kind, label, _ := strings.Cut(address, ".")
	if !isBox(spec.Kind(kind)) {
		return ""
	}
	return label
}

// isBox reports whether the objects of a kind are boxes or desks.
func isBox(kind spec.Kind) bool { return kind == box.Kind || kind == desk.Kind }

func (x boxBlock) write(b *strings.Builder, label string) {
	fmt.Fprintf(b, "%s %q {\n  in      = %s\n  label   = %q\n  running = %t\n  content = %q\n  paint   = %q\n", kindOf(label), label, x.in, x.name, x.open, x.content, x.paint)
	if x.after != "" {
		fmt.Fprintf(b, "  depends_on = [%s]\n", boxAddress(x.after))
	}
	writeLifecycle(b, lifecycle{keep: x.keep})
	b.WriteString("}\n")
}

// boxes returns the labels of the boxes that are such, sorted.
func (m model) boxLabels(such func(label string, x boxBlock) bool) []string {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(m.boxes)) {
		if such == nil || such(label, m.boxes[label]) {
			all = append(all, label)
		}
	}
	return all
}

// around returns the addresses of all that is around a box, the innermost first.
func (m model) around(label string) []string {
	var all []string
	for range maxDepth + 2 {
		x, there := m.boxes[label]
		if !there {
			break
		}
		all = append(all, x.in)
		label = boxOf(x.in)
	}
	return all
}

// isSeen reports whether a box can be seen once the model is applied: all around it is up.
func (m model) isSeen(label string) bool {
	for _, a := range m.around(label) {
		if inner := boxOf(a); inner != "" && !m.boxes[inner].open {
			return false
		}
		if vm, is := strings.CutPrefix(a, "vm."); is && !m.vms[vm].running {
			return false
		}
	}
	return true
}

// boxesAreValid reports whether the boxes have places, and names of their own in these.
func (m model) boxesAreValid() bool {
	names := map[[3]string]bool{}
	for label, x := range m.boxes {
		around := m.around(label)
		vm, inVM := strings.CutPrefix(around[len(around)-1], "vm.")
		v, there := m.vms[vm]
		if m.boxless || len(around) > maxDepth || !inVM || !there || v.keys != nil || isDesk(label) && len(around) > 1 {
			return false
		}
		if slices.ContainsFunc(around[:len(around)-1], func(a string) bool { return isDesk(boxOf(a)) }) || names[[3]string{x.in, string(kindOf(label)), x.name}] {
			return false
		}
		names[[3]string{x.in, string(kindOf(label)), x.name}] = true
		if _, there := m.boxes[x.after]; x.after != "" && !there {
			return false
		}
	}
	return true
}

// changeBox changes a box block.
func (d *drawing) changeBox(label string, change func(*boxBlock)) bool {
	x := d.m.boxes[label]
	change(&x)
	d.m.boxes[label] = x
	return true
}

// boxLabel picks a box of the model.
func (d *drawing) boxLabel(what string, such func(label string, x boxBlock) bool) (string, bool) {
	all := d.m.boxLabels(such)
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, what), true
}

// place picks a VM or a box.
func (d *drawing) place() (string, bool) {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(d.m.vms)) {
		if single(d.m.vms[label]) {
			all = append(all, "vm."+label)
		}
	}
	for _, label := range d.m.boxLabels(nil) {
		all = append(all, boxAddress(label))
	}
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, "place"), true
}

// dropBox removes a box block, with all that is inside of it and what refers to these.
func (d *drawing) dropBox(label string) {
	delete(d.m.boxes, label)
	for other, x := range d.m.boxes {
		if x.after == label {
			x.after = ""
			d.m.boxes[other] = x
		}
	}
	for other, v := range d.m.vms {
		if v.box == label {
			v.box = ""
			d.m.vms[other] = v
		}
	}
	for _, inner := range d.m.boxLabels(func(_ string, x boxBlock) bool { return x.in == boxAddress(label) }) {
		d.dropBox(inner)
	}
}

// expectedBoxes returns a line for each box that can be seen.
func (m model) expectedBoxes() []string {
	var all []string
	for label, x := range m.boxes {
		if m.isSeen(label) {
			all = append(all, boxLine(boxAddress(label), x.in, x))
		}
	}
	return all
}

func boxLine(address, in string, x boxBlock) string {
	return fmt.Sprintf("%s in %s as %s open %t %q %q", address, in, x.name, x.open, x.content, x.paint)
}

// isBoxIn reports whether an address is that of a box of the model that is inside of one of some
// addresses.
func (m model) isBoxIn(a spec.Address, such func(string) bool) bool {
	return isBox(a.Kind) && slices.ContainsFunc(m.around(a.Name), such)
}
