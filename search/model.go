package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// model is a spec as the search draws it. Labels are the keys of its maps.
type model struct {
	vms     map[string]vm
	disks   map[string]disk
	boxes   map[string]boxBlock
	items   map[string]item
	moved   [][2]string // from and to, as a spec writes them
	removed []string    // addresses that their removed block lets go of
	ended   []string    // addresses that their removed block destroys
	imports [][2]string // addresses, and the names of objects that others made

	provider string // that every block refers to
	boxless  bool   // there are no boxes and desks
	itemless bool   // there are no engines
}

// vm is a vm block. With keys it has a for_each.
type vm struct {
	name    string // "": derived
	running bool
	cpus    int
	cmdline string   // a literal
	source  string   // the label of the vm that cmdline takes an attribute of; "": none
	attr    string   // that attribute
	disks   []string // labels, in the order in which they are attached
	port    int      // of the host; 0: none is forwarded; autoPort: the kernel chooses it
	ip      string   // host_ip of that; "": the default
	after   []string // depends_on: labels of vms
	box     string   // depends_on: the label of a box, too; "": of none

	keys   []string          // of for_each, sorted
	byKey  map[string]string // key -> the label of its disk; nil: the instances have none
	atOnce int               // rollout.max_unavailable; 0: not written

	trigger string // of restart_triggers; "": none
	unready bool   // ssh.wait = false
	ignores bool   // changes of cpus
	ceiling string // of cpus and disks: "live", "restart"; "": the default
	keep    bool   // prevent_destroy
	rules   bool   // a precondition and a postcondition, which hold
	asks    string // the label of the vm that the precondition asks for asked; "": for nothing
	asked   string // an attribute
}

// disk is a disk block.
type disk struct {
	size   int // MiB
	format string
	keep   bool // prevent_destroy
}

func newModel() model {
	return model{provider: "provider.sim.here", vms: map[string]vm{}, disks: map[string]disk{}, boxes: map[string]boxBlock{}, items: map[string]item{}}
}

// modelFor returns an empty model for a host.
func modelFor(h Host) model {
	m := newModel()
	m.provider = "provider." + h.Type.Name + ".here"
	_, boxes := h.Inside[box.Kind]
	_, engines := h.Inside[spec.Engine]
	m.boxless, m.itemless = !boxes, !engines
	return m
}

func (m model) clone() model {
	c := model{
		provider: m.provider, boxless: m.boxless, itemless: m.itemless, items: maps.Clone(m.items),
		vms: maps.Clone(m.vms), disks: maps.Clone(m.disks), boxes: maps.Clone(m.boxes),
		moved: slices.Clone(m.moved), removed: slices.Clone(m.removed), ended: slices.Clone(m.ended), imports: slices.Clone(m.imports),
	}
	for label, v := range c.vms {
		v.disks, v.after, v.keys, v.byKey = slices.Clone(v.disks), slices.Clone(v.after), slices.Clone(v.keys), maps.Clone(v.byKey)
		c.vms[label] = v
	}
	return c
}

// settled returns the model without its moved, removed and import blocks.
func (m model) settled() model {
	c := m.clone()
	c.moved, c.removed, c.ended, c.imports = nil, nil, nil, nil
	return c
}

// hcl returns the model as a spec file.
func (m model) hcl(header string) string {
	var b strings.Builder
	b.WriteString(header)
	for _, label := range slices.Sorted(maps.Keys(m.disks)) {
		d := m.disks[label]
		fmt.Fprintf(&b, "disk %q {\n  provider = %s\n  size     = \"%dMiB\"\n  format   = %q\n", label, m.provider, d.size, d.format)
		writeLifecycle(&b, lifecycle{keep: d.keep})
		b.WriteString("}\n")
	}
	for _, label := range slices.Sorted(maps.Keys(m.vms)) {
		m.vms[label].write(&b, label, m.provider)
	}
	for _, label := range m.boxLabels(nil) {
		m.boxes[label].write(&b, label)
	}
	for _, label := range slices.Sorted(maps.Keys(m.items)) {
		m.items[label].write(&b, label)
	}
	for _, move := range m.moved {
		fmt.Fprintf(&b, "moved {\n  from = %s\n  to   = %s\n}\n", move[0], move[1])
	}
	for _, address := range m.removed {
		fmt.Fprintf(&b, "removed {\n  from    = %s\n  destroy = false\n}\n", address)
	}
	for _, address := range m.ended {
		fmt.Fprintf(&b, "removed {\n  from    = %s\n  destroy = true\n}\n", address)
	}
	for _, i := range m.imports {
		fmt.Fprintf(&b, "import {\n  to = %s\n  id = %q\n}\n", i[0], i[1])
	}
	return b.String()
}

func (v vm) write(b *strings.Builder, label, provider string) {
	fmt.Fprintf(b, "vm %q {\n  provider = %s\n", label, provider)
	switch {
	case v.byKey != nil:
		b.WriteString("  for_each = {\n")
		for _, key := range v.keys {
			fmt.Fprintf(b, "    %s = disk.%s\n", key, v.byKey[key])
		}
		b.WriteString("  }\n  additional_disk {\n    disk = each.value\n  }\n")
	case v.keys != nil:
		fmt.Fprintf(b, "  for_each = toset([\"%s\"])\n", strings.Join(v.keys, "\", \""))
	}
	if v.name != "" {
		fmt.Fprintf(b, "  name = %q\n", v.name)
	}
	fmt.Fprintf(b, "  running = %t\n  cpus = %d\n", v.running, v.cpus)
	switch {
	case v.source != "":
		fmt.Fprintf(b, "  boot {\n    kernel  = \"k\"\n    cmdline = \"${vm.%s.%s}\"\n  }\n", v.source, v.attr)
	case v.cmdline != "":
		fmt.Fprintf(b, "  boot {\n    kernel  = \"k\"\n    cmdline = %q\n  }\n", v.cmdline)
	default:
		b.WriteString("  boot {\n    kernel = \"k\"\n  }\n")
	}
	for _, d := range v.disks {
		fmt.Fprintf(b, "  additional_disk {\n    disk = disk.%s\n  }\n", d)
	}
	if v.port != 0 {
		fmt.Fprintf(b, "  port_forward {\n    guest   = 80\n    host    = %q\n    host_ip = %q\n  }\n", v.host(), v.listens())
	}
	var depends []string
	for _, other := range v.after {
		depends = append(depends, "vm."+other)
	}
	if v.box != "" {
		depends = append(depends, boxAddress(v.box))
	}
	if len(depends) > 0 {
		fmt.Fprintf(b, "  depends_on = [%s]\n", strings.Join(depends, ", "))
	}
	if v.atOnce > 0 {
		fmt.Fprintf(b, "  rollout {\n    max_unavailable = %d\n  }\n", v.atOnce)
	}
	if v.trigger != "" {
		fmt.Fprintf(b, "  restart_triggers = { t = %q }\n", v.trigger)
	}
	if v.unready {
		b.WriteString("  ssh {\n    wait = false\n  }\n")
	}
	rules := lifecycle{ignores: v.ignores, ceiling: v.ceiling, keep: v.keep}
	if v.rules {
		rules.holds = v.precondition()
	}
	writeLifecycle(b, rules)
	b.WriteString("}\n")
}

type lifecycle struct {
	ignores, keep bool
	ceiling       string
	holds         string // a precondition, beside a postcondition that holds; "": neither
}

func writeLifecycle(b *strings.Builder, l lifecycle) {
	if l == (lifecycle{}) {
		return
	}
	b.WriteString("  lifecycle {\n")
	if l.keep {
		b.WriteString("    prevent_destroy = true\n")
	}
	if l.ignores {
		b.WriteString("    ignore_changes = [cpus]\n")
	}
	if l.ceiling != "" {
		fmt.Fprintf(b, "    on_change = { cpus = %q, additional_disk = %q }\n", l.ceiling, l.ceiling)
	}
	if l.holds != "" {
		fmt.Fprintf(b, "    precondition {\n      condition     = %s\n      error_message = \"no\"\n    }\n"+
			"    postcondition {\n      condition     = self.id != \"\" && self.name != \"\"\n      error_message = \"it is ${self.id}\"\n    }\n", l.holds)
	}
	b.WriteString("  }\n")
}

// precondition returns a condition that holds, if need be once another VM is made or changed.
func (v vm) precondition() string {
	if v.asks == "" {
		return `length("x") == 1`
	}
	return fmt.Sprintf(`vm.%s.%s != "-"`, v.asks, v.asked)
}

// needs lists the labels of the vms that a vm refers to.
func (v vm) needs() []string {
	all := slices.Clone(v.after)
	if v.source != "" {
		all = append(all, v.source)
	}
	if v.asks != "" {
		all = append(all, v.asks)
	}
	return all
}

const everyAddress = "0.0.0.0"

// listens returns the host address of the port that is forwarded to the VM.
func (v vm) listens() string { return cmp.Or(v.ip, "127.0.0.1") }

// host returns the host port as a spec writes it.
func (v vm) host() string {
	if v.port == autoPort {
		return "auto"
	}
	return strconv.Itoa(v.port)
}

// valid reports whether the model is a spec without mistakes.
func (m model) valid() bool {
	names, users := map[string]bool{}, map[string]bool{}
	for label, v := range m.vms {
		for _, other := range v.needs() {
			if o, ok := m.vms[other]; !ok || other == label || (v.source == other || v.asks == other) && o.keys != nil {
				return false
			}
		}
		if v.name != "" && (names[v.name] || v.keys != nil) || v.keys != nil && v.port != 0 {
			return false
		}
		if _, there := m.boxes[v.box]; v.box != "" && !there {
			return false
		}
		names[v.name] = true
		for _, d := range v.allDisks() {
			if _, ok := m.disks[d]; !ok || users[d] {
				return false
			}
			users[d] = true
		}
	}
	for label, v := range m.vms {
		for other, o := range m.vms {
			if label < other && v.port > 0 && v.port == o.port && (v.listens() == o.listens() || v.listens() == everyAddress || o.listens() == everyAddress) {
				return false
			}
		}
	}
	if !m.boxesAreValid() || !m.itemsAreValid() {
		return false
	}
	for _, move := range m.moved {
		_, from := m.vms[strings.TrimPrefix(move[0], "vm.")]
		if _, to := m.vms[strings.TrimPrefix(move[1], "vm.")]; !to || from {
			return false
		}
	}
	for _, address := range append(slices.Clone(m.removed), m.ended...) {
		if _, there := m.vms[strings.TrimPrefix(address, "vm.")]; there {
			return false
		}
	}
	for _, i := range m.imports {
		if v, there := m.vms[strings.TrimPrefix(i[0], "vm.")]; !there || v.name != i[1] || v.keys != nil {
			return false
		}
	}
	return !m.cyclic()
}

func (v vm) allDisks() []string {
	all := slices.Clone(v.disks)
	for _, key := range slices.Sorted(maps.Keys(v.byKey)) {
		all = append(all, v.byKey[key])
	}
	return all
}

// needsOf returns the addresses of the blocks that a block refers to.
func (m model) needsOf(address string) []string {
	var all []string
	if label := boxOf(address); label != "" {
		x := m.boxes[label]
		if all = []string{x.in}; x.after != "" {
			all = append(all, boxAddress(x.after))
		}
		return all
	}
	if _, label, _ := strings.Cut(address, "."); itemKind(label) != "" && itemAddress(label) == address {
		return m.itemNeeds(label)
	}
	v := m.vms[strings.TrimPrefix(address, "vm.")]
	for _, other := range v.needs() {
		all = append(all, "vm."+other)
	}
	if v.box != "" {
		all = append(all, boxAddress(v.box))
	}
	return all
}

// cyclic reports whether blocks refer to each other in a circle.
func (m model) cyclic() bool {
	const under, done = 1, 2
	state := map[string]int{}
	var visit func(string) bool
	visit = func(address string) bool {
		switch state[address] {
		case under:
			return true
		case done:
			return false
		}
		state[address] = under
		if slices.ContainsFunc(m.needsOf(address), visit) {
			return true
		}
		state[address] = done
		return false
	}
	for label := range m.vms {
		if visit("vm." + label) {
			return true
		}
	}
	for label := range m.items {
		if visit(itemAddress(label)) {
			return true
		}
	}
	for label := range m.boxes {
		if visit(boxAddress(label)) {
			return true
		}
	}
	return false
}

// instances returns the labels of the disks of each VM, by the VM's address.
func (m model) instances() map[string][]string {
	all := map[string][]string{}
	for label, v := range m.vms {
		if v.keys == nil {
			all["vm."+label] = v.disks
			continue
		}
		for _, key := range v.keys {
			var disks []string
			if v.byKey != nil {
				disks = []string{v.byKey[key]}
			}
			all[fmt.Sprintf("vm.%s[%q]", label, key)] = disks
		}
	}
	return all
}
