package libvirt

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"path"
	"slices"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// description holds one version of a domain's XML, as far as vmctl reads it.
type description struct {
	Virtualized string // domain type: kvm, qemu
	CPUs        uint64 // the largest number
	CPUsNow     uint64 // the number at its start
	Memory      uint64 // bytes, the largest size
	Now         uint64 // bytes, the size at its start
	Kernel      string
	Initrd      string
	Cmdline     string
	SSH         *machine.Forward  // nil: the domain has no SSH forward of vmctl's
	Forwards    []machine.Forward // without the SSH forward
	ConsoleLog  string            // file
	Data        string            // the vmctl folder that made it; "": unknown
	Drives      []drive
	Cards       []card
	Owner       *owner // nil: no mark
}

// mark returns the mark; zero: none.
func (d description) mark() owner {
	if d.Owner == nil {
		return owner{}
	}
	return *d.Owner
}

// domainXML is libvirt's description of a domain with vmctl's mark: the parts of a libvirtxml.Domain
// that vmctl reads, since the whole takes much longer.
type domainXML struct {
	XMLName       xml.Name                        `xml:"domain"`
	Type          string                          `xml:"type,attr"`
	Memory        *libvirtxml.DomainMemory        `xml:"memory"`
	CurrentMemory *libvirtxml.DomainCurrentMemory `xml:"currentMemory"`
	VCPU          *libvirtxml.DomainVCPU          `xml:"vcpu"`
	OS            struct {
		Kernel  string `xml:"kernel"`
		Initrd  string `xml:"initrd"`
		Cmdline string `xml:"cmdline"`
	} `xml:"os"`
	Devices struct {
		Disks   []libvirtxml.DomainDisk `xml:"disk"`
		Cards   []cardXML               `xml:"interface"`
		Serials []struct {
			Log libvirtxml.DomainChardevLog `xml:"log"`
		} `xml:"serial"`
	} `xml:"devices"`
	QEMUCommandline libvirtxml.DomainQEMUCommandline `xml:"http://libvirt.org/schemas/domain/qemu/1.0 commandline"`
	Mark            struct {
		Owner *ownerXML `xml:"urn:vmctl:1 owner"`
	} `xml:"metadata"`
}

// describe reads a domain's XML.
func describe(text string) (description, error) {
	var x domainXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return description{}, fmt.Errorf("read the domain's description: %w", err)
	}
	d := description{
		Virtualized: x.Type, Owner: x.Mark.Owner.owner(), Kernel: x.OS.Kernel, Initrd: x.OS.Initrd, Cmdline: x.OS.Cmdline,
	}
	if x.VCPU != nil {
		d.CPUs, d.CPUsNow = uint64(x.VCPU.Value), uint64(cmp.Or(x.VCPU.Current, x.VCPU.Value))
	}
	if x.Memory != nil {
		d.Memory = bytesOf(x.Memory.Value, x.Memory.Unit, "KiB")
		d.Now = d.Memory
	}
	if now := x.CurrentMemory; now != nil && now.Value != 0 {
		d.Now = bytesOf(now.Value, now.Unit, "KiB")
	}
	for _, disk := range x.Devices.Disks {
		d.Drives = append(d.Drives, driveOf(disk))
	}
	for _, c := range x.Devices.Cards {
		d.Cards = append(d.Cards, c.card())
	}
	for _, s := range x.Devices.Serials {
		d.ConsoleLog = cmp.Or(d.ConsoleLog, s.Log.File)
	}
	d.readArgs(x.QEMUCommandline.Args)
	return d, nil
}

func (d *description) readArgs(args []libvirtxml.DomainQEMUCommandlineArg) {
	for i := 0; i+1 < len(args); i++ {
		value := args[i+1].Value
		switch args[i].Value {
		case dataOption:
			d.Data = value
		case "-netdev":
			all := parseNetdev(value)
			if isOurNet(value) && len(all) > 0 && all[0].Guest == sshPort {
				d.SSH, all = &all[0], all[1:]
			}
			d.Forwards = append(d.Forwards, all...)
		}
	}
}

// accel returns the accelerator in a spec's words: the wanted one of the mark, as long as the
// domain fits it.
func (d description) accel() string {
	actual := d.Virtualized
	switch d.Virtualized {
	case typeKVM:
		actual = machine.AccelKVM
	case typeTCG:
		actual = machine.AccelTCG
	}
	if marked := d.mark().Accel; marked == machine.AccelAuto {
		return marked
	}
	return actual
}

// memory returns the size in a spec's words: the wanted one of the mark, as long as the
// domain has just that. If one of the two sizes of a domain is not as wanted, it returns that
// one.
func (d description) memory() uint64 {
	switch {
	case d.isForeign() || d.Owner == nil || roundUp(d.Owner.Memory) != d.Memory:
		return d.Memory
	case d.Now != d.Memory:
		return d.Now
	default:
		return d.Owner.Memory
	}
}

// cpus returns the number in a spec's words, chosen like memory.
func (d description) cpus() uint64 {
	if d.isForeign() || d.Owner == nil || d.Owner.CPUs == d.CPUs {
		return d.CPUsNow
	}
	return d.CPUs
}

// roundUp rounds a size up to whole MiB, as QEMU does.
func roundUp(bytes uint64) uint64 {
	const mib = 1 << 20
	if bytes > math.MaxUint64-mib {
		return bytes
	}
	return (bytes + mib - 1) / mib * mib
}

// digest returns the digest of a boot file that the mark has, as long as the domain boots the
// file that the mark names. Otherwise it describes the file in words.
func digest(file, marked, sha256 string) string {
	switch file {
	case marked:
		return sha256
	case "":
		return "none"
	default:
		return "not vmctl's: " + path.Base(file)
	}
}

// wantedForwards returns the forwards in a spec's words: host 0 if the kernel was to choose.
func (d description) wantedForwards() []machine.Forward {
	all := slices.Clone(d.Forwards)
	for i, f := range all {
		if d.mark().isAuto(i, f) {
			all[i].Host = 0
		}
	}
	return all
}

// claims returns the claims on host ports that the domain holds while it is defined.
func (d description) claims() []providers.Claim {
	return machine.PortClaims(d.wantedForwards())
}
