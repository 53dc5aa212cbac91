package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vmctl/spec"
)

// item is a container engine in a VM, or an image, a volume or a container in one. Its label says which.
type item struct {
	in     string // label of the vm or the engine around it
	name   string // of a volume or a container; of an image, what its ref has between slash and colon. "": derived
	alien  bool   // of an engine: its type has no API
	image  string // of a container: a label
	volume string // of a container: a label; "": it mounts none
	env    string // of a container
	state  string // of a container
	memory int    // of a container, in MiB; 0: no limit
	after  string // of a container: the label of another one; "": none
	keep   bool   // prevent_destroy
}

// itemKind returns the kind of a label of an item, "" for another one.
func itemKind(label string) spec.Kind {
	for _, kind := range []spec.Kind{spec.Engine, spec.Image, spec.Volume, spec.Container} {
		if slices.Contains(itemLabels(kind), label) {
			return kind
		}
	}
	return ""
}

func itemLabels(kind spec.Kind) []string {
	switch kind { //nolint:exhaustive // the search has no other items
	case spec.Engine:
		return engineLabels
	case spec.Image:
		return imageLabels
	case spec.Volume:
		return volumeLabels
	case spec.Container:
		return containerLabels
	default:
		panic("no labels of a " + string(kind))
	}
}

func itemAddress(label string) string { return string(itemKind(label)) + "." + label }

func isItem(kind spec.Kind) bool {
	return slices.Contains([]spec.Kind{spec.Engine, spec.Image, spec.Volume, spec.Container}, kind)
}

func imageRef(name string) string { return "demo/" + name + ":1" }

func (x item) write(b *strings.Builder, label string) {
	kind := itemKind(label)
	fmt.Fprintf(b, "%s %q {\n", kind, label)
	if kind != spec.Engine {
		fmt.Fprintf(b, "  engine = engine.%s\n", x.in)
	}
	switch kind { //nolint:exhaustive // see itemKind
	case spec.Engine:
		fmt.Fprintf(b, "  vm   = vm.%s\n  host = \"unix:///engine\"\n", x.in)
		if x.alien {
			b.WriteString("  type = \"containerd\"\n")
		}
	case spec.Image:
		fmt.Fprintf(b, "  ref = %q\n", imageRef(x.name))
	case spec.Volume, spec.Container:
		if x.name != "" {
			fmt.Fprintf(b, "  name = %q\n", x.name)
		}
	}
	if kind == spec.Container {
		fmt.Fprintf(b, "  image = image.%s\n  env   = { WORD = %q }\n  state = %q\n", x.image, x.env, x.state)
		if x.memory > 0 {
			fmt.Fprintf(b, "  memory = \"%dMiB\"\n", x.memory)
		}
		if x.volume != "" {
			fmt.Fprintf(b, "  mount {\n    volume = volume.%s\n    target = \"/data\"\n  }\n", x.volume)
		}
		if x.after != "" {
			fmt.Fprintf(b, "  depends_on = [container.%s]\n", x.after)
		}
	}
	writeLifecycle(b, lifecycle{keep: x.keep})
	b.WriteString("}\n")
}

// itemsOf returns the labels of the items of a kind that are such, sorted.
func (m model) itemsOf(kind spec.Kind, such func(item) bool) []string {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(m.items)) {
		if itemKind(label) == kind && (such == nil || such(m.items[label])) {
			all = append(all, label)
		}
	}
	return all
}

// vmOfItem returns the label of the VM that an item is in.
func (m model) vmOfItem(label string) string {
	x := m.items[label]
	if itemKind(label) != spec.Engine {
		return m.items[x.in].in
	}
	return x.in
}

// isItemSeen reports whether an item is read once the model is applied: its VM runs, and its engine has an API.
func (m model) isItemSeen(label string) bool {
	inner := itemKind(label) != spec.Engine
	return m.vms[m.vmOfItem(label)].running && (!inner || !m.items[m.items[label].in].alien)
}

// itemsAreValid reports whether the items have places, names of their own in these, and what they refer to beside them.
func (m model) itemsAreValid() bool {
	names := map[[3]string]bool{}
	for label, x := range m.items {
		kind := itemKind(label)
		if v, there := m.vms[m.vmOfItem(label)]; !there || v.keys != nil || m.itemless {
			return false
		}
		if _, there := m.items[x.in]; kind != spec.Engine && !there {
			return false
		}
		name := [3]string{x.in, string(kind), x.name}
		if kind == spec.Engine {
			name = [3]string{x.in} // one in each VM
		}
		if names[name] && (x.name != "" || kind == spec.Engine) {
			return false
		}
		names[name] = true
		if kind != spec.Container {
			continue
		}
		if image, there := m.items[x.image]; !there || image.in != x.in {
			return false
		}
		if volume, there := m.items[x.volume]; x.volume != "" && (!there || volume.in != x.in) {
			return false
		}
		if _, there := m.items[x.after]; x.after != "" && (!there || x.after == label) {
			return false
		}
	}
	return true
}

// itemNeeds returns the addresses that an item refers to.
func (m model) itemNeeds(label string) []string {
	x := m.items[label]
	if itemKind(label) == spec.Engine {
		return []string{"vm." + x.in}
	}
	all := []string{"engine." + x.in}
	for _, other := range []string{x.image, x.volume, x.after} {
		if other != "" {
			all = append(all, itemAddress(other))
		}
	}
	return all
}

// isItemIn reports whether an address is that of an item in one of some addresses.
func (m model) isItemIn(a spec.Address, such func(string) bool) bool {
	x, there := m.items[a.Name]
	if !isItem(a.Kind) || !there {
		return false
	}
	return such("vm."+m.vmOfItem(a.Name)) || a.Kind != spec.Engine && such("engine."+x.in)
}

// expectedItems returns a line for each item that can be read.
func (m model) expectedItems() []string {
	var all []string
	for label, x := range m.items {
		if m.isItemSeen(label) {
			all = append(all, itemLine(itemAddress(label), itemOf{
				in: x.in, name: cmp.Or(x.name, "*"), alien: x.alien, image: x.image, state: x.state, memory: int64(x.memory) << 20,
			}))
		}
	}
	return all
}

// itemOf holds the parts of an item that an engine shows.
type itemOf struct {
	in, name, image, state string
	alien                  bool
	memory                 int64
}

func itemLine(address string, o itemOf) string {
	switch kind, _, _ := strings.Cut(address, "."); spec.Kind(kind) { //nolint:exhaustive // the search has no other items
	case spec.Engine:
		return fmt.Sprintf("%s alien %t", address, o.alien)
	case spec.Container:
		return fmt.Sprintf("%s in %s as %s of %s is %s with %d", address, o.in, o.name, o.image, o.state, o.memory)
	default:
		return fmt.Sprintf("%s in %s as %s", address, o.in, o.name)
	}
}

// dropItem removes an item, with all that is inside of it and what refers to these.
func (d *drawing) dropItem(label string) {
	delete(d.m.items, label)
	for _, other := range slices.Sorted(maps.Keys(d.m.items)) {
		x, there := d.m.items[other]
		switch {
		case !there:
		case itemKind(other) != spec.Engine && x.in == label, x.image == label:
			d.dropItem(other)
		default:
			if x.volume == label {
				x.volume = ""
			}
			if x.after == label {
				x.after = ""
			}
			d.m.items[other] = x
		}
	}
}

// itemLabel picks an item of a kind.
func (d *drawing) itemLabel(kind spec.Kind, such func(item) bool) (string, bool) {
	all := d.m.itemsOf(kind, such)
	if len(all) == 0 {
		return "", false
	}
	return d.pick(all, string(kind)), true
}

func (d *drawing) changeItem(kind spec.Kind, change func(*item)) bool {
	label, ok := d.itemLabel(kind, nil)
	if ok {
		x := d.m.items[label]
		change(&x)
		d.m.items[label] = x
	}
	return ok
}

// addItem adds an item with a label that is free.
func (d *drawing) addItem(kind spec.Kind, x item) bool {
	label := d.pick(itemLabels(kind), string(kind))
	if _, there := d.m.items[label]; there {
		return false
	}
	d.m.items[label] = x
	return true
}

// container returns a container of an image of the model.
func (d *drawing) container() (item, bool) {
	image, ok := d.itemLabel(spec.Image, nil)
	in := d.m.items[image].in
	x := item{in: in, image: image, env: word(d.number(2, "env")), state: d.pick(containerStates, "state")}
	if volume, there := d.itemLabel(spec.Volume, func(v item) bool { return v.in == in }); there && d.number(2, "mounts") > 1 {
		x.volume = volume
	}
	return x, ok
}

// baseItems draws engines and what is in them.
func (d *drawing) baseItems() {
	keep := func(before model) {
		if !d.m.valid() {
			d.m = before
		}
	}
	for _, vm := range slices.Sorted(maps.Keys(d.m.vms)) {
		if single(d.m.vms[vm]) && len(d.m.itemsOf(spec.Engine, nil)) < len(engineLabels) {
			before := d.m.clone()
			d.m.items[engineLabels[len(d.m.itemsOf(spec.Engine, nil))]] = item{in: vm}
			keep(before)
		}
	}
	for _, kind := range []spec.Kind{spec.Image, spec.Volume, spec.Container} {
		for range itemLabels(kind) {
			engine, ok := d.itemLabel(spec.Engine, nil)
			if !ok {
				return
			}
			before, x := d.m.clone(), item{in: engine, name: d.pick(itemNames, "name")}
			if kind == spec.Container {
				if x, ok = d.container(); !ok {
					continue
				}
			}
			d.addItem(kind, x)
			keep(before)
		}
	}
}
