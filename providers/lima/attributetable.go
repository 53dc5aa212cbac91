package lima

import (
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

const (
	atBoot     = "Lima reads it when the instance starts"
	keysAtBoot = "the guest gets its keys when it starts"
	loginWay   = "only how vmctl logs in"
	atMaking   = "an image counts when the disk is made from it"
)

// kinds lists every attribute that this provider supports.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"name":         {},
		"running":      {Judge: machine.Live("starts or stops it")},
		"cpus":         {Judge: machine.AtStart(atBoot)},
		"memory":       {Judge: machine.AtStart(atBoot)},
		"accel":        {Judge: machine.AtStart(atBoot)},
		"template":     {Judge: judgeTemplate},
		"params":       {Judge: machine.AtStart(atBoot)},
		"plain":        {Judge: machine.AtStart(atBoot)},
		"mount":        {Judge: machine.AtStart(atBoot)},
		"port_forward": {Judge: machine.ForwardsAtStart(atBoot)},

		"image":          {Judge: machine.AtCreation(atMaking)},
		"image.source":   {Judge: machine.AtCreation(atMaking)},
		"image.sha256":   {Judge: machine.AtCreation(atMaking), Optional: true},
		"root_disk":      {Judge: machine.AtCreation("a root disk is made from the image when its VM is made")},
		"root_disk.size": {Judge: growsAtStart},

		"additional_disk":  {Judge: machine.DisksAtStart(atBoot)},
		"restart_triggers": {Judge: machine.AtStart("a restart for it was asked for")},

		"ssh.user":            {Judge: machine.AtStart("the guest lets the user in when it starts")},
		"ssh.identity":        {Judge: machine.AtStart(keysAtBoot)},
		"ssh.authorized_keys": {Judge: machine.AtStart(keysAtBoot)},
		"ssh.host_key":        {Judge: machine.Live(loginWay)},

		"id":       machine.Stays(),
		"address":  machine.Stays(),
		"ssh_port": {Computed: true},
		"ports":    machine.Ports(),
	},
	spec.Disk: {
		"name":    {},
		"size":    {Judge: machine.Grows},
		"format":  {},
		"fs_type": {Judge: machine.AtCreation("the guest makes the file system on an empty disk, once")},

		"id":   machine.Stays(),
		"path": machine.Stays(),
	},
}
