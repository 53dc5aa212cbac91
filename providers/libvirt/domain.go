package libvirt

import (
	"encoding/xml"
	"fmt"
	"math"
	"path"
	"slices"

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
	Owner       *owner // nil: no mark
}

type domainXML struct {
	Type   string    `xml:"type,attr"`
	Memory memoryXML `xml:"memory"`
	Now    memoryXML `xml:"currentMemory"`
	VCPU   struct {
		Current uint64 `xml:"current,attr"`
		Max     uint64 `xml:",chardata"`
	} `xml:"vcpu"`
	OS struct {
		Kernel  string `xml:"kernel"`
		Initrd  string `xml:"initrd"`
		Cmdline string `xml:"cmdline"`
	} `xml:"os"`
	Serials []struct {
		Log struct {
			File string `xml:"file,attr"`
		} `xml:"log"`
	} `xml:"devices>serial"`
	Drives   []driveXML `xml:"devices>disk"`
	Metadata struct {
		Owner *readOwnerXML `xml:"urn:vmctl:1 owner"`
	} `xml:"metadata"`
	QEMU struct {
		Args []struct {
			Value string `xml:"value,attr"`
		} `xml:"http://libvirt.org/schemas/domain/qemu/1.0 arg"`
	} `xml:"http://libvirt.org/schemas/domain/qemu/1.0 commandline"`
}

type memoryXML struct {
	Unit  string `xml:"unit,attr"`
	Value uint64 `xml:",chardata"`
}

func (m memoryXML) bytes() uint64 {
	switch m.Unit {
	case "b", "bytes":
		return m.Value
	case "MiB", "M":
		return m.Value << 20
	case "GiB", "G":
		return m.Value << 30
	default: // libvirt answers in KiB
		return m.Value << 10
	}
}

// describe reads a domain's XML.
func describe(text string) (description, error) {
	var x domainXML
	if err := xml.Unmarshal([]byte(text), &x); err != nil {
		return description{}, fmt.Errorf("read the domain's description: %w", err)
	}
	d := description{
		Virtualized: x.Type, CPUs: x.VCPU.Max, Memory: x.Memory.bytes(),
		Kernel: x.OS.Kernel, Initrd: x.OS.Initrd, Cmdline: x.OS.Cmdline,
		Owner: x.Metadata.Owner.owner(),
	}
	for _, drive := range x.Drives {
		d.Drives = append(d.Drives, drive.drive())
	}
	if d.CPUsNow = x.VCPU.Current; d.CPUsNow == 0 {
		d.CPUsNow = d.CPUs
	}
	if d.Now = x.Now.bytes(); d.Now == 0 {
		d.Now = d.Memory
	}
	for _, s := range x.Serials {
		if s.Log.File != "" {
			d.ConsoleLog = s.Log.File
			break
		}
	}
	for i, arg := range x.QEMU.Args {
		if i+1 == len(x.QEMU.Args) {
			break
		}
		value := x.QEMU.Args[i+1].Value
		if arg.Value == dataOption {
			d.Data = value
		}
		if arg.Value != "-netdev" {
			continue
		}
		all := parseNetdev(value)
		if isOurNet(value) && len(all) > 0 && all[0].Guest == sshPort {
			d.SSH, all = &all[0], all[1:]
		}
		d.Forwards = append(d.Forwards, all...)
	}
	return d, nil
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
	if d.Owner != nil && (d.Owner.Accel == machine.AccelAuto || d.Owner.Accel == actual) {
		return d.Owner.Accel
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
		if d.Owner.isAuto(i, f) {
			all[i].Host = 0
		}
	}
	return all
}

// claims returns the claims on host ports that the domain holds while it is defined.
func (d description) claims() []providers.Claim {
	return machine.PortClaims(d.wantedForwards())
}
