package libvirt

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/xmltree"
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

// mark returns the mark; zero: none.
func (d description) mark() owner {
	if d.Owner == nil {
		return owner{}
	}
	return *d.Owner
}

// describe reads a domain's XML.
func describe(text string) (description, error) {
	x, err := xmltree.Parse(text)
	if err != nil {
		return description{}, fmt.Errorf("read the domain's description: %w", err)
	}
	d := description{Virtualized: x.Attr("type"), Owner: ownerIn(x.Child("metadata"))}
	n := numbers{}
	if cpus := x.Child("vcpu"); cpus != nil {
		d.CPUs = n.in("vcpu", cpus.Text)
		d.CPUsNow = cmp.Or(n.in("vcpu", cpus.Attr("current")), d.CPUs)
	}
	if m := x.Child("memory"); m != nil {
		d.Memory = bytesOf(n.in("memory", m.Text), m.Attr("unit"), "KiB")
		d.Now = d.Memory
	}
	now := x.Child("currentMemory")
	if size := n.in("currentMemory", now.String()); size != 0 {
		d.Now = bytesOf(size, now.Attr("unit"), "KiB")
	}
	os := x.Child("os")
	d.Kernel, d.Initrd, d.Cmdline = os.Child("kernel").String(), os.Child("initrd").String(), os.Child("cmdline").String()
	d.readDevices(x.Child("devices"))
	for _, line := range x.All("commandline") {
		if line.Space() == qemuSpace {
			d.readArgs(line.All("arg"))
		}
	}
	if n.err != nil {
		return description{}, fmt.Errorf("read the domain's description: %w", n.err)
	}
	return d, nil
}

// qemuSpace is the namespace of QEMU's own arguments in a domain.
const qemuSpace = "http://libvirt.org/schemas/domain/qemu/1.0"

// numbers reads numbers, and keeps the first error.
type numbers struct{ err error }

// in reads the number in an element; 0: there is none.
func (n *numbers) in(element, text string) uint64 {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("%s is no number: %q", element, text)
	}
	return v
}

func (d *description) readDevices(all *xmltree.Element) {
	for _, disk := range all.All("disk") {
		d.Drives = append(d.Drives, driveIn(disk))
	}
	for _, s := range all.All("serial") {
		if file := s.Child("log").Attr("file"); file != "" {
			d.ConsoleLog = file
			break
		}
	}
}

func (d *description) readArgs(args []*xmltree.Element) {
	for i := 0; i+1 < len(args); i++ {
		value := args[i+1].Attr("value")
		switch args[i].Attr("value") {
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
