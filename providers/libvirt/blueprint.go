package libvirt

import (
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
		Disks: j.markedDisks(), Image: files.image,
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
		Disks: files.image.around(j.parts()), Volumes: j.plugged.listing, Forwards: j.stickyPorts(), Owner: element,
	}
	if j.seen != nil && j.seen.owner() != nil {
		b.Seed = j.seen.owner().Image.Seed
	}
	if j.want.Boot != nil {
		b.Cmdline = j.want.Boot.Cmdline
	}
	return b, nil
}
