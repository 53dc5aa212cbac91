package libvirt

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// part is a disk that vmctl gives to a domain.
type part struct {
	Path     string // of a volume
	Format   string
	Serial   string // the serial number that the guest sees; "": none
	CDROM    bool
	BootFrom bool // the firmware starts here
}

// drive is a disk as a domain has it.
type drive struct {
	Path         string // of its file; "": it has no file, or is a volume of a pool
	Pool, Volume string // if the domain names it by pool and volume
	Device       string // disk, cdrom, floppy, lun
	Target       string // vda
	Serial       string
	Under        []string // the files below its overlay, as far as libvirt lists them
	Job          string   // of a block job that copies or commits it: copy, active-commit; "": none
}

// driveOf reads a disk of a domain.
func driveOf(x libvirtxml.DomainDisk) drive {
	d := drive{Device: cmp.Or(x.Device, deviceDisk), Serial: x.Serial}
	if x.Target != nil {
		d.Target = x.Target.Dev
	}
	if x.Mirror != nil {
		d.Job = x.Mirror.Job
	}
	if s := x.Source; s != nil {
		d.Path = fileIn(s)
		switch {
		case s.Block != nil:
			d.Path = s.Block.Dev
		case s.Volume != nil:
			d.Pool, d.Volume = s.Volume.Pool, s.Volume.Volume
		}
	}
	for b := x.BackingStore; b != nil && fileIn(b.Source) != ""; b = b.BackingStore {
		d.Under = append(d.Under, fileIn(b.Source))
	}
	return d
}

// fileIn returns the file of a source; "": it is none.
func fileIn(s *libvirtxml.DomainDiskSource) string {
	if s == nil || s.File == nil {
		return ""
	}
	return s.File.File
}

// The devices of a domain's disks.
const (
	deviceDisk  = "disk"
	deviceCDROM = "cdrom"
)

// setDisks gives a domain its disks. New disks come in this order. An existing disk keeps its
// place, unless it is not wanted and keep is false for it: then it is removed.
func (b blueprint) setDisks(d *libvirtxml.Domain, keep func(drive) bool) {
	wanted := func(disk libvirtxml.DomainDisk) bool {
		return slices.ContainsFunc(b.Disks, func(p part) bool { return b.Volumes.isOn(driveOf(disk), p.Path) })
	}
	disks := slices.DeleteFunc(d.Devices.Disks, func(disk libvirtxml.DomainDisk) bool { return !wanted(disk) && !keep(driveOf(disk)) })
	for _, p := range b.Disks {
		if !slices.ContainsFunc(disks, func(disk libvirtxml.DomainDisk) bool { return b.Volumes.isOn(driveOf(disk), p.Path) }) {
			disks = append(disks, p.fresh(freeTarget(disks, p)))
		}
	}
	d.Devices.Disks = disks
}

// setBoot makes the firmware start from the disk with BootFrom.
func setBoot(d *libvirtxml.Domain, b blueprint) {
	for i, disk := range d.Devices.Disks {
		d.Devices.Disks[i].Boot = nil
		if slices.ContainsFunc(b.Disks, func(p part) bool { return p.BootFrom && b.Volumes.isOn(driveOf(disk), p.Path) }) {
			d.Devices.Disks[i].Boot = &libvirtxml.DomainDeviceBoot{Order: 1}
			d.OS.BootDevices = nil
		}
	}
}

// fresh describes a disk that a domain does not have yet.
func (p part) fresh(target string) libvirtxml.DomainDisk {
	d := libvirtxml.DomainDisk{
		Device: deviceDisk,
		Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: p.Format},
		Source: &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: p.Path}},
		Target: &libvirtxml.DomainDiskTarget{Dev: target, Bus: "virtio"},
		Serial: p.Serial,
	}
	if p.CDROM {
		d.Device, d.Target.Bus = deviceCDROM, busSCSI
		d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	return d
}

// isDisk reports whether a guest sees a hard disk. additional_disk does not concern others, for
// example a CD-ROM that somebody put in.
func (d drive) isDisk() bool { return d.Device == deviceDisk }

// isOther reports whether a drive is of no concern to vmctl: it is no hard disk, or has no file,
// for example a disk of another host.
func (d drive) isOther() bool { return !d.isDisk() || d.file() == "" }

// freeTarget names the next disk of a bus: vda, vdb … vdz, vdaa.
func freeTarget(disks []libvirtxml.DomainDisk, p part) string {
	prefix := "vd"
	if p.CDROM {
		prefix = "sd"
	}
	for i := 0; ; i++ {
		name := prefix + letters(i)
		if !slices.ContainsFunc(disks, func(d libvirtxml.DomainDisk) bool { return d.Target != nil && d.Target.Dev == name }) {
			return name
		}
	}
}

func letters(i int) string {
	const alphabet = 26
	if i < alphabet {
		return string(rune('a' + i))
	}
	return letters(i/alphabet-1) + string(rune('a'+i%alphabet))
}

// setPorts adds root ports, so that disks can be attached while the domain runs: on PCI
// Express each disk needs a root port, which has to be there at the start.
func setPorts(d *libvirtxml.Domain, b board) {
	if b.SparePorts == 0 {
		return
	}
	ports := 0
	for _, c := range d.Devices.Controllers {
		if c.Type == "pci" && c.Model == rootPort {
			ports++
		}
	}
	if !slices.ContainsFunc(d.Devices.Controllers, func(c libvirtxml.DomainController) bool { return c.Type == "pci" && c.Model == "pcie-root" }) {
		first := uint(0)
		d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: "pci", Index: &first, Model: "pcie-root"})
	}
	for free := ports - onPorts(d); free < b.SparePorts; free++ {
		d.Devices.Controllers = append(d.Devices.Controllers, libvirtxml.DomainController{Type: "pci", Model: rootPort})
	}
}

const rootPort = "pcie-root-port"

// onPorts counts the devices that are behind a root port, or will be: every virtio disk, and
// every device with an address on another bus than the root's.
func onPorts(d *libvirtxml.Domain) int {
	n := 0
	count := func(a *libvirtxml.DomainAddress, will bool) {
		switch {
		case a == nil || a.PCI == nil || a.PCI.Bus == nil:
			if will {
				n++
			}
		case *a.PCI.Bus != 0:
			n++
		}
	}
	for _, disk := range d.Devices.Disks {
		count(disk.Address, disk.Target != nil && disk.Target.Bus == "virtio")
	}
	for _, c := range d.Devices.Controllers {
		count(c.Address, c.Type == busSCSI)
	}
	for _, i := range d.Devices.Interfaces {
		count(i.Address, true)
	}
	for _, r := range d.Devices.RNGs {
		count(r.Address, true)
	}
	if m := d.Devices.MemBalloon; m != nil && m.Model != "none" {
		count(m.Address, true)
	}
	return n
}

// maxSerial is the length of the longest serial number in virtio (bytes).
const maxSerial = 20

// serialOf returns the serial number of a disk for the guest: the resource's name and key,
// cut to maxSerial.
func serialOf(name string) string {
	serial := []byte(name)
	for i, c := range serial {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			serial[i] = '_'
		}
	}
	if len(serial) <= maxSerial {
		return string(serial)
	}
	tail := "-" + guard.Short(name)[:4]
	return string(serial[:maxSerial-len(tail)]) + tail
}

// deviceXML describes a disk that is attached to a running domain.
func (p part) deviceXML(existing string) (string, error) {
	d, err := parseDomain(existing)
	if err != nil {
		return "", err
	}
	disk := p.fresh(freeTarget(d.Devices.Disks, p))
	return disk.Marshal()
}

// unplug removes the disks on some files and some forwards of vmctl's own network from a
// domain, and reports whether it had any.
func (b blueprint) unplug(d *libvirtxml.Domain, files []string, such func(machine.Forward) bool) (changed bool) {
	had := len(d.Devices.Disks)
	d.Devices.Disks = slices.DeleteFunc(d.Devices.Disks, func(disk libvirtxml.DomainDisk) bool {
		x := driveOf(disk)
		return x.isDisk() && b.Volumes.files.among(b.Volumes.pathOf(x), files) != ""
	})
	changed = len(d.Devices.Disks) < had
	if d.QEMUCommandline == nil {
		return changed
	}
	for i, arg := range d.QEMUCommandline.Args {
		all := parseNetdev(arg.Value)
		if kept := slices.DeleteFunc(slices.Clone(all), such); isOurNet(arg.Value) && len(kept) < len(all) {
			d.QEMUCommandline.Args[i].Value, changed = netdev(kept), true
		}
	}
	return changed
}

// drivesNamed returns the files and volumes that the disks of a domain's description name. It
// reads them also from a description of which vmctl does not understand the rest.
func drivesNamed(text string) ([]drive, error) {
	var all []drive
	decoder, in := xml.NewDecoder(strings.NewReader(text)), []string{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the domain's description: %w", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if in = append(in, t.Name.Local); slices.Contains(in, "disk") {
				all = append(all, drivesAt(t.Attr)...)
			}
		case xml.EndElement:
			in = in[:len(in)-1]
		}
	}
}

// drivesAt returns the files and the volume in the attributes of an element of a disk.
func drivesAt(attrs []xml.Attr) []drive {
	var all []drive
	var d drive
	for _, a := range attrs {
		switch {
		case strings.HasPrefix(a.Value, "/"):
			all = append(all, drive{Path: a.Value})
		case a.Name.Local == "pool":
			d.Pool = a.Value
		case a.Name.Local == "volume":
			d.Volume = a.Value
		}
	}
	if d.Volume != "" {
		all = append(all, d)
	}
	return all
}
