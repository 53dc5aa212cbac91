package libvirt

import (
	"context"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"libvirt.org/go/libvirtxml"
)

// imageFiles makes the volumes of a vm of an image: a root disk, and a seed for cloud-init
// with the keys.
func (j *job) imageFiles(ctx context.Context, f *bootFiles, k keyring) error {
	m, err := j.ensureRoot(ctx, f.pool)
	if err != nil {
		return err
	}
	f.image, err = j.ensureSeed(ctx, f.pool, k, f.boot.Keys, m)
	return err
}

// hasImage reports whether the domain has all volumes of its image: a root disk of the wanted
// size, and a seed with the wanted keys.
func (j *job) hasImage(ctx context.Context) (bool, error) {
	m, ok := j.ownImage()
	if !ok || m != j.seen.mark().Image || !j.keysAreWanted() {
		return false, nil
	}
	_, root, err := j.look(ctx, m.Root)
	if err != nil {
		return false, fail(err, "read the root disk of %s", j.Address)
	}
	files := j.sameFiles()
	has := func(file string) bool {
		return slices.ContainsFunc(j.seen.configured.Drives, func(d drive) bool { return files.same(d.Path, file) })
	}
	if root == nil || root.Capacity != j.want.RootDisk || !has(m.Root) || !has(m.Seed) {
		return false, nil
	}
	return j.isThere(ctx, m.Seed)
}

// around puts the root disk before the additional disks, and the seed behind them.
func (m markedImage) around(disks []part) []part {
	if m.Root == "" {
		return disks
	}
	all := append([]part{{Path: m.Root, Format: formatQCOW2, BootFrom: true}}, disks...)
	return append(all, part{Path: m.Seed, Format: formatRaw, CDROM: true})
}

// busSCSI is the bus of a CD-ROM: the kernels of cloud images know a virtio SCSI
// adapter, and few of them SATA.
const busSCSI = "scsi"

const modelVirtioSCSI = "virtio-scsi"

// setSeed puts the seed of a blueprint into the drive of an earlier seed, and adds an adapter
// if there is none.
func (b blueprint) setSeed(d *libvirtxml.Domain) {
	i := slices.IndexFunc(b.Disks, func(p part) bool { return p.CDROM })
	if i < 0 {
		return
	}
	insert(d, b.Seed, b.Disks[i].Path)
	isAdapter := func(c libvirtxml.DomainController) bool { return c.Type == busSCSI }
	if !slices.ContainsFunc(d.Devices.Controllers, isAdapter) {
		d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: busSCSI, Model: modelVirtioSCSI})
	}
}

// insert changes the file of the drive with the earlier seed, and returns the drive; nil:
// there is none.
func insert(d *libvirtxml.Domain, before, seed string) *libvirtxml.DomainDisk {
	for i, disk := range d.Devices.Disks {
		if disk.Device != deviceCDROM || before == "" || fileIn(disk.Source) != before {
			continue
		}
		d.Devices.Disks[i].Source.File.File = seed
		return &d.Devices.Disks[i]
	}
	return nil
}

// seedDevice describes the drive of a running domain with another seed; "": the domain has no
// such drive.
func seedDevice(existing, before, seed string) (string, error) {
	d, err := parseDomain(existing)
	if err != nil {
		return "", err
	}
	disk := insert(d, before, seed)
	if disk == nil {
		return "", nil
	}
	// libvirt's description of the open file does not fit the next one.
	disk.BackingStore = nil
	disk.Source.Index = 0
	return disk.Marshal()
}

// imageAttrs returns the attributes of a domain's image and root disk.
func (s observedDomain) imageAttrs() map[string]cty.Value {
	all := map[string]cty.Value{imageAttr: cty.NullVal(cty.DynamicPseudoType), rootAttr: cty.NullVal(cty.DynamicPseudoType)}
	if s.root == nil {
		return all
	}
	m := s.owner().Image
	all[imageAttr] = cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal(m.Source), "sha256": cty.StringVal(m.SHA256)})
	switch {
	case s.root.gone:
	case s.root.bytes > 0:
		all[rootAttr] = cty.ObjectVal(map[string]cty.Value{"size": cty.NumberUIntVal(s.root.bytes)})
	default:
		delete(all, rootAttr) // it could not be read
	}
	return all
}
