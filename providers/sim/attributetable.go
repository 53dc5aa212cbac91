package sim

import (
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// kinds lists every attribute that this provider supports.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"name":         {},
		"running":      {Judge: machine.Live("starts or stops it")},
		"cpus":         {Judge: machine.AtStart("its process gets its CPUs when it starts")},
		"memory":       {Judge: machine.AtStart("its process gets its memory when it starts")},
		"accel":        {Judge: machine.AtStart("its process gets its accelerator when it starts")},
		"boot":         {Judge: machine.AtStart("a kernel is booted when its process starts")},
		"boot.kernel":  {Judge: machine.Live("another path to the same content")},
		"boot.initrd":  {Judge: machine.Live("another path to the same content")},
		"port_forward": {Judge: machine.ForwardsAtStart("its process gets its forwarded ports when it starts")},
		"ssh.user":     {Judge: machine.Live(sshReason)},
		"ssh.identity": {Judge: machine.Live(sshReason)},
		"ssh.host_key": {Judge: machine.Live(sshReason)},

		"ssh.authorized_keys": {Judge: machine.Live(sshReason)},

		"additional_disk.disk": {Judge: machine.Disks},
		"additional_disk":      {Judge: machine.Disks},
		"network_interface":    {Judge: machine.AtStart("its process gets its networks when it starts")},
		"image":                {},
		"root_disk":            {},
		"root_disk.size":       {Judge: machine.Grows},
		"cloud_init":           {Judge: machine.AtStart("the guest reads it when it starts")},
		"restart_triggers":     {Judge: machine.AtStart("that is what they are for")},

		"id":       machine.Stays(),
		"address":  machine.AddressIn(),
		"ssh_port": machine.Stays(), // nobody listens for SSH
		"ports":    machine.Ports(),
	},
	spec.Disk: {
		"name":   {},
		"size":   {Judge: machine.Grows},
		"format": {},

		"id":   machine.Stays(),
		"path": machine.Stays(),
	},
	spec.Network: {
		"name":     {},
		"cidr":     {},
		"internal": {},

		"id": machine.Stays(),
	},
}

const sshReason = "nobody logs into a simulated guest"
