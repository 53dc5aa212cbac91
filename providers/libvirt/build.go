package libvirt

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// blueprint holds all decisions of vmctl about a domain.
type blueprint struct {
	Name, UUID string
	Arch       string
	Board      board
	Emulator   string
	Type       string // typeKVM or typeTCG
	CPUs       uint64
	Memory     uint64 // bytes
	Kernel     string // path of a volume
	Initrd     string
	Cmdline    string
	ConsoleLog string
	Data       string            // vmctl's folder, which people see in the process table
	Disks      []part            // in order
	Volumes    listing           // of all pools
	Networks   []markedNetwork   // in order
	Forwards   []machine.Forward // with the host ports to request, the SSH forward first
	Owner      string            // the mark's element
	Seed       string            // the present seed of the domain; "": none
}

// blueprint puts together the blueprint of the wanted domain.
func (j *job) blueprint(a abilities, files bootFiles) (blueprint, error) {
	domainType, why := j.chooseType(j.want.Accel, a)
	if why != "" {
		j.say("accel = \"auto\": %s, so QEMU emulates the CPU (TCG)", why)
	}
	mark := owner{
		Mark: providers.Mark{
			ID: j.settings.Project.Lineage(), Project: j.settings.Project.Name, Address: j.Address,
			Of: j.Object, Generation: j.Generation, HostKey: files.hostKey,
		},
		Accel: j.want.Accel, CPUs: j.want.CPUs, Memory: j.want.Memory, Boot: files.boot, Forwards: j.want.Forwards,
		Disks: j.markedDisks(), Networks: j.markedNetworks(), Image: files.image,
	}
	element, err := mark.element()
	if err != nil {
		return blueprint{}, err
	}
	b := blueprint{
		Name: j.Name, UUID: string(j.Object), Arch: a.Arch, Board: boards[a.Arch], Emulator: a.Emulator, Type: domainType,
		CPUs: j.want.CPUs, Memory: j.want.Memory,
		Kernel: files.boot.Kernel, Initrd: files.boot.Initrd,
		ConsoleLog: files.pool.file(kindConsole.name(string(j.Object), "")).path(), Data: j.settings.Dir,
		Disks: files.image.around(j.parts()), Volumes: j.plugged.listing, Networks: j.markedNetworks(), Forwards: j.stickyPorts(), Owner: element,
		Seed: j.seen.mark().Image.Seed,
	}
	if j.want.Boot != nil {
		b.Cmdline = j.want.Boot.Cmdline
	}
	return b, nil
}

// fresh returns the XML of a domain that does not exist.
func (b blueprint) fresh() (string, error) {
	off := uint(0)
	d := &libvirtxml.Domain{
		Name: b.Name, UUID: b.UUID,
		OS:         &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: b.Arch, Machine: b.Board.Machine, Type: "hvm"}},
		OnPoweroff: "destroy", OnReboot: "restart", OnCrash: "destroy",
		Devices: &libvirtxml.DomainDeviceList{
			Emulator:    b.Emulator,
			Controllers: []libvirtxml.DomainController{{Type: "usb", Model: "none"}},
			Serials: []libvirtxml.DomainSerial{{
				Source: &libvirtxml.DomainChardevSource{Pty: &libvirtxml.DomainChardevSourcePty{}},
				Log:    &libvirtxml.DomainChardevLog{File: b.ConsoleLog, Append: "off"},
				Target: &libvirtxml.DomainSerialTarget{Port: &off},
			}},
			MemBalloon: &libvirtxml.DomainMemBalloon{Model: "none"},
		},
	}
	if b.Board.ACPI {
		d.Features = &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}}
	}
	if err := b.onto(d); err != nil {
		return "", err
	}
	return d.Marshal()
}

// parseDomain reads a domain's XML.
func parseDomain(text string) (*libvirtxml.Domain, error) {
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("read the domain's description: %w", err)
	}
	if d.Devices == nil {
		d.Devices = &libvirtxml.DomainDeviceList{}
	}
	return d, nil
}

// xml returns one version of the domain's XML.
func (j *job) xml(ctx context.Context, of version) (string, error) {
	text, err := j.XML(ctx, j.seen.UUID, of)
	if err != nil {
		return "", fail(err, "read %s", j.Name)
	}
	return text, nil
}

// edit changes the configuration of the domain for its next start, in one call: the domain is
// at no time undefined. It defines nothing if there is nothing to change.
func (j *job) edit(ctx context.Context, doing string, change func(*libvirtxml.Domain) error) error {
	text, err := j.xml(ctx, toDefine)
	if err != nil {
		return err
	}
	changed, err := j.changed(text, change)
	if err != nil {
		return asFailure(err, fmt.Sprintf("describe %s to libvirt", j.Name))
	}
	if changed == "" && !j.seen.Transient {
		return nil
	}
	if err := j.Define(ctx, cmp.Or(changed, text)); err != nil {
		return fail(err, "%s", doing)
	}
	return nil
}

// changed returns the domain's description with a change; "": that changes nothing.
func (j *job) changed(text string, change func(*libvirtxml.Domain) error) (string, error) {
	d, err := parseDomain(text)
	if err != nil {
		return "", err
	}
	copied, err := d.Marshal()
	if err != nil {
		return "", err
	}
	if err := change(d); err != nil {
		return "", err
	}
	after, err := d.Marshal()
	if err != nil || after == copied {
		return "", err
	}
	return after, j.checkLoss(text, copied)
}

// onto writes all decisions of vmctl into a domain. All else stays, including additions by
// others.
func (b blueprint) onto(d *libvirtxml.Domain) error {
	d.Memory = &libvirtxml.DomainMemory{Unit: "KiB", Value: uint(roundUp(b.Memory) >> 10)}
	d.CurrentMemory = nil
	d.VCPU = &libvirtxml.DomainVCPU{Value: uint(b.CPUs)}
	d.VCPUs = nil
	d.OS.Kernel, d.OS.Initrd, d.OS.Cmdline = b.Kernel, b.Initrd, b.Cmdline
	setAccel(d, b.Type)
	b.setSeed(d)
	b.setDisks(d, drive.isOther)
	setBoot(d, b)
	if err := setCards(d, b.Networks); err != nil {
		return err
	}
	setPorts(d, b.Board)
	setNet(d, b.UUID, b.Forwards)
	setData(d, b.Data)
	return setOwner(d, b.Owner)
}

// libvirt's types of domains: KVM or TCG runs the CPUs.
const (
	typeKVM = "kvm"
	typeTCG = "qemu"
)

// setAccel makes a domain run on KVM or TCG. It keeps a CPU that fits.
func setAccel(d *libvirtxml.Domain, domainType string) {
	if d.Type == domainType && d.CPU != nil {
		return
	}
	d.Type = domainType
	d.CPU = &libvirtxml.DomainCPU{Mode: "maximum"}
	if domainType == typeKVM {
		d.CPU.Mode = "host-model"
	}
}

// setNet gives a domain the user network, in place of its present one.
func setNet(d *libvirtxml.Domain, uuid string, all []machine.Forward) {
	setArgs(d, "-netdev", netdev(all), isOurNet)
	setArgs(d, "-device", fmt.Sprintf("virtio-net-pci,netdev=%s,mac=%s,bus=pcie.0,addr=0x10", netID, macOf(uuid)), isOurCard)
}

// dataOption is QEMU's option for a folder to look for firmware in.
const dataOption = "-L"

// setData puts vmctl's folder into QEMU's arguments, as a folder to look for
// firmware in: harmless, and not seen by the guest.
func setData(d *libvirtxml.Domain, folder string) {
	setArgs(d, dataOption, folder, func(string) bool { return true })
}

func isOurNet(value string) bool {
	return value == netPrefix || strings.HasPrefix(value, netPrefix+",")
}

func isOurCard(value string) bool { return slices.Contains(strings.Split(value, ","), "netdev="+netID) }

// setArgs replaces the value of the QEMU option that is ours, or adds it.
func setArgs(d *libvirtxml.Domain, option, value string, ours func(string) bool) {
	if d.QEMUCommandline == nil {
		d.QEMUCommandline = &libvirtxml.DomainQEMUCommandline{}
	}
	args := d.QEMUCommandline.Args
	for i := 0; i+1 < len(args); i++ {
		if args[i].Value == option && ours(args[i+1].Value) {
			args[i+1].Value = value
			return
		}
	}
	d.QEMUCommandline.Args = append(args,
		libvirtxml.DomainQEMUCommandlineArg{Value: option}, libvirtxml.DomainQEMUCommandlineArg{Value: value})
}

// retarget gives a domain another accelerator and other host ports.
func retarget(domainType string, all []machine.Forward) func(*libvirtxml.Domain) error {
	return func(d *libvirtxml.Domain) error {
		setAccel(d, domainType)
		setNet(d, d.UUID, all)
		return nil
	}
}

// macOf derives a domain's MAC from its UUID, in the range that QEMU uses.
func macOf(uuid string) string {
	sum := sha256.Sum256([]byte("vmctl mac\x00" + uuid))
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", sum[0], sum[1], sum[2])
}
