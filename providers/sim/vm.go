package sim

import (
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// config holds the settings of a VM.
type config struct {
	CPUs     uint64            `json:"cpus"`
	Memory   uint64            `json:"memory"` // bytes
	Accel    string            `json:"accel"`
	Boot     *machine.Boot     `json:"boot,omitempty"`
	Forwards []machine.Forward `json:"forwards,omitempty"`

	Disks     []attached         `json:"disks,omitempty"`
	Networks  []placed           `json:"networks,omitempty"`
	RootSize  uint64             `json:"root_size,omitempty"` // bytes; 0: as large as its content
	CloudInit *machine.CloudInit `json:"cloud_init,omitempty"`
	Triggers  map[string]string  `json:"restart_triggers,omitempty"`
}

const (
	loopback = "127.0.0.1"
)

// The kinds of claims.
const (
	claimLock     = "the lock of root disk"
	claimDiskName = "disk name"
	claimDiskLock = "the lock of disk"
)

// kindProcess is the kind of an object that is no resource: a process that holds a claim that
// a VM needs.
const kindProcess spec.Kind = "process"

// configOf returns the settings of a wanted VM. uses has the IDs and names of its disks on
// this host.
func configOf(vm machine.VM, uses map[spec.Address]providers.Used) config {
	c := config{
		CPUs: vm.CPUs, Memory: vm.Memory, Accel: vm.Accel, Forwards: vm.Forwards,
		RootSize: vm.RootDisk, CloudInit: vm.CloudInit, Triggers: vm.Triggers,
	}
	if b := vm.Boot; b != nil { // without the paths of the files
		c.Boot = &machine.Boot{KernelSHA256: b.KernelSHA256, InitrdSHA256: b.InitrdSHA256, Cmdline: b.Cmdline}
	}
	for _, a := range vm.Disks {
		c.Disks = append(c.Disks, attached{Address: a, ID: uses[a].ID, Name: uses[a].Name})
	}
	for _, i := range vm.Interfaces {
		c.Networks = append(c.Networks, placed{Address: i.Network, ID: uses[i.Network].ID, Name: uses[i.Network].Name, IP: i.IP})
	}
	return c
}
