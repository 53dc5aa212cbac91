package libvirt

import (
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// disksOf reads additional_disk.
func disksOf(v cty.Value) ([]spec.Address, error) {
	if !known(v) {
		return nil, nil
	}
	var all []spec.Address
	for _, e := range v.AsValueSlice() {
		a, err := spec.ParseAddress(text(e, "disk"))
		if err != nil || a.Kind != spec.Disk {
			return nil, fmt.Errorf("additional_disk.disk = %q is no disk of this spec", text(e, "disk"))
		}
		all = append(all, a)
	}
	return all, nil
}

// disksValue is additional_disk as a spec has it.
func disksValue(all []string) cty.Value {
	shape := cty.Object(map[string]cty.Type{"disk": cty.String, "mount_point": cty.String})
	var values []cty.Value
	for _, disk := range all {
		values = append(values, cty.ObjectVal(map[string]cty.Value{"disk": cty.StringVal(disk), "mount_point": cty.NullVal(cty.String)}))
	}
	if len(values) == 0 {
		return cty.ListValEmpty(shape)
	}
	return cty.ListVal(values)
}

// disks are the hard disks of a domain, but for those of its own that vmctl made for
// it alone.
func (d description) disks() []drive {
	return slices.DeleteFunc(slices.Clone(d.Drives), func(x drive) bool {
		return x.Device != deviceDisk || x.file() == "" || d.Owner != nil && x.file() == d.Owner.Image.Root
	})
}

// file is what a disk is on: a file, or pool/volume.
func (d drive) file() string {
	if d.Path == "" && d.Volume != "" {
		return d.Pool + "/" + d.Volume
	}
	return d.Path
}

// shown are the additional disks of a domain: in the order of its mark as far as
// they are there, and then what is there beside. A disk that is nobody's is shown by
// its file, unless the domain is somebody else's or had it when it was imported.
func (r rack) shown(d description) []string {
	var marked []markedDisk
	var kept []string
	if d.Owner != nil {
		marked, kept = d.Owner.Disks, d.Owner.Kept
	}
	var all []string
	there := map[string]bool{}
	for _, x := range d.disks() {
		there[r.pathOf(x)] = true
	}
	for _, m := range marked {
		if there[m.Path] {
			all = append(all, r.name(m.Path, m.Address.String()))
			delete(there, m.Path)
		}
	}
	for _, x := range d.disks() {
		path := r.pathOf(x)
		if _, ours := r.address(path); !there[path] || !ours && (d.Owner == nil || slices.Contains(kept, x.file())) {
			continue
		}
		delete(there, path)
		all = append(all, r.name(path, x.file()))
	}
	return all
}

// name is the address of the disk at a path, or what else it is called.
func (r rack) name(path, otherwise string) string {
	if a, ok := r.address(path); ok {
		return a.String()
	}
	return otherwise
}

// judgeDisks lets disks be added while the VM runs. One that the guest may be using
// is not pulled from under it.
func judgeDisks(before, after cty.Value, running bool) providers.Verdict {
	had, has := diskNames(before), diskNames(after)
	for _, disk := range had {
		if !slices.Contains(has, disk) {
			return atStart("its guest may be using "+disk+", which is taken away while it is off")(before, after, running)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(has), func(disk string) bool { return !slices.Contains(had, disk) })
	if !slices.Equal(kept, had) || len(had) > 0 && has[0] != had[0] {
		return atStart("the guest finds its disks in another order")(before, after, running)
	}
	return providers.Verdict{Applies: providers.Live, Reason: "a disk is attached, running or not"}
}

func diskNames(v cty.Value) []string {
	var all []string
	if known(v) && v.CanIterateElements() {
		for _, e := range v.AsValueSlice() {
			all = append(all, text(e, "disk"))
		}
	}
	return all
}
