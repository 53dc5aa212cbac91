package search

import "vmctl/spec"

// itemEditTable has every way in which the search changes what is in engines.
var itemEditTable = []editKind{
	{"add an engine", func(d *drawing) bool {
		in, ok := d.vmLabel("vm", single)
		return ok && d.addItem(spec.Engine, item{in: in})
	}},
	{"drop an engine", func(d *drawing) bool {
		label, ok := d.itemLabel(spec.Engine, nil)
		if ok {
			d.dropItem(label)
		}
		return ok
	}},
	{"type of an engine", func(d *drawing) bool {
		return d.changeItem(spec.Engine, func(x *item) { x.alien = !x.alien })
	}},
	{"type of an engine whose vm restarts", func(d *drawing) bool {
		label, ok := d.itemLabel(spec.Engine, nil)
		if !ok {
			return false
		}
		x := d.m.items[label]
		x.alien = !x.alien
		d.m.items[label] = x
		return d.change(x.in, func(v *vm) { v.trigger = word(d.number(4, "trigger")) })
	}},
	{"add an image", func(d *drawing) bool {
		in, ok := d.itemLabel(spec.Engine, nil)
		return ok && d.addItem(spec.Image, item{in: in, name: d.pick(itemNames, "name")})
	}},
	{"drop an image", func(d *drawing) bool {
		label, ok := d.itemLabel(spec.Image, nil)
		if ok {
			d.dropItem(label)
		}
		return ok
	}},
	{"ref of an image", func(d *drawing) bool {
		return d.changeItem(spec.Image, func(x *item) { x.name = d.pick(itemNames, "name") })
	}},
	{"add a volume", func(d *drawing) bool {
		in, ok := d.itemLabel(spec.Engine, nil)
		return ok && d.addItem(spec.Volume, item{in: in, name: d.pick(itemNames, "name")})
	}},
	{"drop a volume", func(d *drawing) bool {
		label, ok := d.itemLabel(spec.Volume, nil)
		if ok {
			d.dropItem(label)
		}
		return ok
	}},
	{"name of a volume", func(d *drawing) bool {
		return d.changeItem(spec.Volume, func(x *item) { x.name = d.pick(itemNames, "name") })
	}},
	{"add a container", func(d *drawing) bool {
		x, ok := d.container()
		return ok && d.addItem(spec.Container, x)
	}},
	{"drop a container", func(d *drawing) bool {
		label, ok := d.itemLabel(spec.Container, nil)
		if ok {
			d.dropItem(label)
		}
		return ok
	}},
	{"env of a container", func(d *drawing) bool {
		return d.changeItem(spec.Container, func(x *item) { x.env = word(d.number(3, "env")) })
	}},
	{"state of a container", func(d *drawing) bool {
		return d.changeItem(spec.Container, func(x *item) { x.state = d.pick(containerStates, "state") })
	}},
	{"memory of a container", func(d *drawing) bool {
		return d.changeItem(spec.Container, func(x *item) { x.memory = 8 * below(d.t, 3, "memory") })
	}},
	{"name of a container", func(d *drawing) bool {
		return d.changeItem(spec.Container, func(x *item) { x.name = d.pick(append([]string{""}, itemNames...), "name") })
	}},
	{"containers swap names", func(d *drawing) bool {
		one, ok := d.itemLabel(spec.Container, func(x item) bool { return x.name != "" })
		other, two := d.itemLabel(spec.Container, func(x item) bool { return x.name != "" && x.name != d.m.items[one].name && x.in == d.m.items[one].in })
		if !ok || !two {
			return false
		}
		a, b := d.m.items[one], d.m.items[other]
		a.name, b.name = b.name, a.name
		d.m.items[one], d.m.items[other] = a, b
		return true
	}},
	{"image of a container", func(d *drawing) bool {
		image, ok := d.itemLabel(spec.Image, nil)
		return ok && d.changeItem(spec.Container, func(x *item) { x.image = image })
	}},
	{"mount of a container", func(d *drawing) bool {
		volume, ok := d.itemLabel(spec.Volume, nil)
		return d.changeItem(spec.Container, func(x *item) {
			if x.volume != "" || !ok {
				volume = ""
			}
			x.volume = volume
		})
	}},
	{"container moves", func(d *drawing) bool { // and takes what is beside it in its new engine
		image, ok := d.itemLabel(spec.Image, nil)
		return ok && d.changeItem(spec.Container, func(x *item) { x.in, x.image, x.volume = d.m.items[image].in, image, "" })
	}},
	{"container after container", func(d *drawing) bool {
		other, ok := d.itemLabel(spec.Container, nil)
		return ok && d.changeItem(spec.Container, func(x *item) { x.after = other })
	}},
	{"prevent_destroy in an engine", func(d *drawing) bool {
		kind := []spec.Kind{spec.Image, spec.Volume, spec.Container}[below(d.t, 3, "kind")]
		return d.strict && d.changeItem(kind, func(x *item) { x.keep = !x.keep })
	}},
}
