package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/providers/providertest/box"
	"vmctl/search/desk"
	"vmctl/spec"
)

// compare checks that the world equals the model, except for blocked addresses.
func (b *harness) compare(law string, world *planner.World, blocked map[spec.Address]planner.Cause) {
	b.t.Helper()
	stays := map[string]bool{} // blocks whose records did not move, since their new address is blocked
	for _, move := range b.model.moved {
		for a := range blocked {
			stays[move[0]] = stays[move[0]] || a.String() == move[1] || a.Block().String() == move[1]
		}
	}
	free := func(lines []string) []string {
		return slices.DeleteFunc(lines, func(line string) bool {
			address, _, _ := strings.Cut(line, " ")
			a, err := spec.ParseAddress(address)
			b.must(err)
			isBlocked := func(outer string) bool {
				o, err := spec.ParseAddress(outer)
				b.must(err)
				return blocked[o] != ""
			}
			return blocked[a] != "" || stays[a.String()] || stays[a.Block().String()] || b.model.isBoxIn(a, isBlocked) || b.model.isItemIn(a, isBlocked)
		})
	}
	if diff := cmp.Diff(free(b.expectedWorld(world)), free(b.observedWorld(world))); diff != "" {
		b.failf(law, "the world (-want +is):\n%s", diff)
	}
}

// expectedWorld returns the world as the model has it. If the model takes a value from another VM,
// it has the value that the observed world shows of that VM.
func (b *harness) expectedWorld(world *planner.World) []string {
	all := []string{}
	for address, disks := range b.model.instances() {
		block, _, _ := strings.Cut(strings.TrimPrefix(address, "vm."), "[")
		v := b.model.vms[block]
		state := providers.StateOff
		if v.running {
			state = providers.StateRunning
		}
		name := v.name
		if name == "" {
			name = "*"
		}
		cpus := fmt.Sprint(v.cpus)
		if v.ignores {
			cpus = "*"
		}
		port := ""
		if v.port != 0 {
			port = v.listens() + ":" + v.host()
		}
		all = append(all, fmt.Sprintf("%s %s %s cpus %s disks %v port %s cmdline %s", address, name, state, cpus, disks, port, b.cmdline(world, v)))
	}
	for label, d := range b.model.disks {
		all = append(all, fmt.Sprintf("disk.%s %dMiB %s", label, d.size, d.format))
	}
	all = append(all, b.model.expectedBoxes()...)
	all = append(all, b.model.expectedItems()...)
	slices.Sort(all)
	return all
}

// cmdline returns the kernel's command line that a VM is to have, * if it is not known: the VM
// whose value it takes is off.
func (b *harness) cmdline(world *planner.World, v vm) string {
	if v.source == "" {
		return v.cmdline
	}
	for _, system := range world.Systems() {
		for _, o := range system.Inventory.Objects {
			if o.Owner == nil || o.Owner.Of != o.ID || b.addressOf(&o, system.Inside) != (spec.Address{Kind: spec.VM, Name: v.source}) || o.Running == nil || !*o.Running {
				continue
			}
			if v.attr == "name" {
				return o.Name
			}
			if known := text(o.Attrs, v.attr); known != "" {
				return known
			}
		}
	}
	return "*"
}

// observedWorld returns the world as it was observed.
func (b *harness) observedWorld(world *planner.World) []string {
	all := []string{}
	for _, system := range world.Systems() {
		for _, o := range system.Inventory.Objects {
			if o.Owner == nil || o.Owner.ID != project.Lineage() || o.Owner.Of != o.ID || slices.Contains(b.model.removed, o.Owner.Address.Block().String()) {
				continue
			}
			if b.isHalfImported(&o) {
				continue
			}
			a := b.addressOf(&o, system.Inside)
			switch o.Kind { //nolint:exhaustive // the search has no other kinds
			case spec.VM:
				name := o.Name
				if v := b.model.vms[a.Name]; v.name == "" {
					name = "*"
				}
				var disks []string
				for _, e := range elements(o.Attrs, "additional_disk") {
					disks = append(disks, strings.TrimPrefix(e.GetAttr("disk").AsString(), "disk."))
				}
				cpus := fmt.Sprint(number(o.Attrs, "cpus"))
				if b.model.vms[a.Name].ignores {
					cpus = "*"
				}
				port := ""
				for _, e := range elements(o.Attrs, "port_forward") {
					port = e.GetAttr("host_ip").AsString() + ":" + text(e, "host")
				}
				cmdline := ""
				if b.cmdline(world, b.model.vms[a.Name]) == "*" {
					cmdline = "*"
				} else if boot := part(o.Attrs, "boot"); !boot.IsNull() {
					cmdline = text(boot, "cmdline")
				}
				line := fmt.Sprintf("%s %s %s cpus %s disks %v port %s cmdline %s", a, name, o.State, cpus, disks, port, cmdline)
				if other := runsOtherwise(&o, map[string]bool{"cpus": cpus == "*", "boot": cmdline == "*"}); len(other) > 0 {
					line += fmt.Sprint(", and runs with another ", other)
				}
				all = append(all, line)
			case spec.Disk:
				all = append(all, fmt.Sprintf("%s %dMiB %s", a, number(o.Attrs, "size")>>20, o.Attrs.GetAttr("format").AsString()))
			case spec.Engine, spec.Image, spec.Volume, spec.Container:
				x, wanted := b.model.items[a.Name]
				if wanted && !b.model.isItemSeen(a.Name) { // it is still where it was, perhaps
					continue
				}
				seen := itemOf{
					in: system.Inside.Name, name: o.Name, alien: text(o.Attrs, "type") == "containerd",
					image: strings.TrimPrefix(text(o.Attrs, "image"), "image."), state: text(o.Attrs, "state"), memory: number(o.Attrs, "memory"),
				}
				if o.Kind == spec.Image {
					seen.name = strings.TrimSuffix(strings.TrimPrefix(string(o.ID), "docker.io/demo/"), ":1")
				} else if x.name == "" {
					seen.name = "*"
				}
				all = append(all, itemLine(a.String(), seen))
			case box.Kind, desk.Kind:
				if _, wanted := b.model.boxes[a.Name]; wanted && !b.model.isSeen(a.Name) { // it is still where it was, perhaps
					continue
				}
				all = append(all, boxLine(a.String(), system.Inside.String(), boxBlock{
					name: text(o.Attrs, "label"), open: *o.Running, content: text(o.Attrs, "content"), paint: text(o.Attrs, "paint"),
				}))
			}
		}
	}
	slices.Sort(all)
	return all
}

// runsOtherwise names the attributes that an object runs with otherwise than it is configured,
// except those in anything.
func runsOtherwise(o *providers.Object, anything map[string]bool) []string {
	if o.Live == cty.NilVal {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.Live.AsValueMap())), func(attr string) bool { return anything[attr] })
}

// addressOf returns the address of an object by its record, else by its mark: an apply rewrites
// the mark of a moved object. Images of several engines have the same ID.
func (b *harness) addressOf(o *providers.Object, inside spec.Address) spec.Address {
	for a, r := range b.store.snapshot.Records {
		if r.ID == string(o.ID) && a.Kind == o.Kind && (o.Kind != spec.Image || r.Inside == inside) {
			return a
		}
	}
	return o.Owner.Address
}

// isHalfImported reports whether an object is somebody else's, was marked by an import that was
// cut short, and has no block any more: it is reported and left to its owner. Its address may
// have the block of another object, which was moved there.
func (b *harness) isHalfImported(o *providers.Object) bool {
	a := o.Owner.Address
	_, wanted := b.model.vms[a.Name]
	r, recorded := b.store.snapshot.Records[a]
	moved := recorded && r.ID != string(o.ID) && !madeFor(a, r.ID)
	return strings.HasPrefix(o.Name, foundPrefix) && (moved || !wanted && !recorded)
}

// madeFor reports whether an object was made for an address, and not for one that it had
// before.
func madeFor(a spec.Address, id string) bool {
	for n := range 16 {
		if string(planner.ObjectID(project, a, n)) == id {
			return true
		}
	}
	return false
}

var noValue = cty.NilVal //nolint:gochecknoglobals // it is constant

func isTrue(v cty.Value, name string) bool {
	b := part(v, name)
	return b.IsKnown() && !b.IsNull() && b.True()
}

// part returns an attribute of an object, null if there is none.
func part(v cty.Value, name string) cty.Value {
	if v == cty.NilVal || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return v.GetAttr(name)
}

func elements(v cty.Value, name string) []cty.Value {
	if list := part(v, name); !list.IsNull() && list.IsKnown() {
		return list.AsValueSlice()
	}
	return nil
}

func number(v cty.Value, name string) int64 {
	n := part(v, name)
	if n.IsNull() || !n.IsKnown() {
		return 0
	}
	i, _ := n.AsBigFloat().Int64()
	return i
}

// text returns an attribute as a template writes it, "" if it is null or not known.
func text(v cty.Value, name string) string {
	t := part(v, name)
	if t.IsNull() || !t.IsKnown() {
		return ""
	}
	if t.Type() == cty.Number {
		return t.AsBigFloat().Text('f', -1)
	}
	return t.AsString()
}
