package libvirt

import (
	"slices"

	"vmctl/spec"
)

// disks returns the hard disks of a domain, without the root disk that vmctl made from its
// image.
func (d description) disks(files *sameFiles) []drive {
	o := d.mark()
	return slices.DeleteFunc(slices.Clone(d.Drives), func(x drive) bool {
		return x.isOther() || o.Image.Root != "" && o.given(x, x.Path, files) == o.Image.Root
	})
}

// base returns the path of the disk below the overlays that others made: the file that the
// domain was given.
func (l listing) base(o owner, x drive) string {
	path := l.pathOf(x)
	if given := o.given(x, path, l.files); given != "" {
		return given
	}
	return path
}

// file returns the file of a drive, or pool/volume.
func (d drive) file() string {
	if d.Path == "" && d.Volume != "" {
		return d.Pool + "/" + d.Volume
	}
	return d.Path
}

// shown returns the additional disks of a domain: first those in its mark, in order, as far
// as the domain has them, and then its other disks. A disk without an owner is shown by its
// file, unless the domain is somebody else's or had it when it was imported.
func (r diskIndex) shown(d description) []string {
	o := d.mark()
	var all []string
	there := map[string]bool{}
	for _, x := range d.disks(r.files) {
		there[r.base(o, x)] = true
	}
	for _, m := range o.Disks {
		if there[m.Path] {
			all = append(all, r.nameMarked(m))
			delete(there, m.Path)
		}
	}
	for _, x := range d.disks(r.files) {
		path := r.base(o, x)
		if _, ours := r.address(path); !there[path] || !ours && (d.Owner == nil || r.keeps(o, x)) {
			continue
		}
		delete(there, path)
		all = append(all, r.name(path, x.file()))
	}
	return all
}

// keeps reports whether the domain had a drive, or the disk below its overlays, when it was
// imported.
func (l listing) keeps(o owner, x drive) bool {
	return slices.Contains(o.Kept, x.file()) || l.files.among(l.base(o, x), o.Kept) != ""
}

// nameMarked returns the address of a disk in the domain's mark. A disk that is gone keeps
// its address until it is made again in another file: then the domain has another disk than
// the spec, and it is shown by its file.
func (r diskIndex) nameMarked(m markedDisk) string {
	a, ok := r.address(m.Path)
	if !ok {
		a = m.Address
	}
	if r.elsewhere(a, m.Path) {
		return m.Path
	}
	return a.String()
}

// name returns the address of the disk at a path, or otherwise if it has none.
func (r diskIndex) name(path, otherwise string) string {
	if a, ok := r.address(path); ok && !r.elsewhere(a, path) {
		return a.String()
	}
	return otherwise
}

// elsewhere reports whether the file at a path is gone and the disk of the address is another
// file.
func (r diskIndex) elsewhere(a spec.Address, path string) bool {
	return r.gone(path) && slices.ContainsFunc(r.disks, func(d observedDisk) bool {
		owner, ok := r.address(d.Path)
		return ok && owner == a && !d.copy
	})
}

// gone reports whether the listing of a file's pool lacks the file. If the pool could not be
// listed, it returns false.
func (r diskIndex) gone(path string) bool {
	_, listed, exists := r.at(path)
	return listed && !exists
}
