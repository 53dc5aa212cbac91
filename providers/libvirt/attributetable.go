package libvirt

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

const keysAtBoot = "the guest gets its keys when it boots"

// kinds lists every attribute that this provider supports.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"name":         {},
		"running":      {Judge: machine.Live("starts or stops it")},
		"cpus":         {Judge: machine.AtStart("QEMU gets its CPUs when it starts")},
		"memory":       {Judge: machine.AtStart("QEMU gets its memory when it starts")},
		"accel":        {Judge: machine.AtStart("QEMU gets its accelerator when it starts")},
		"boot":         {Judge: machine.AtStart("a kernel is booted when QEMU starts")},
		"boot.kernel":  {Judge: machine.Live("another path to the same content")},
		"boot.initrd":  {Judge: machine.Live("another path to the same content")},
		"port_forward": {Judge: judgeForwards},

		"image":                     {Judge: machine.AtCreation("an image counts when the disk is made from it")},
		"image.source":              {Judge: machine.AtCreation("an image counts when the disk is made from it")},
		"image.sha256":              {Judge: machine.AtCreation("an image counts when the disk is made from it"), Optional: true},
		"root_disk":                 {Judge: machine.AtCreation("a root disk is made from the image when its VM is made")},
		"root_disk.size":            {Judge: machine.Grows},
		"cloud_init":                {Judge: machine.AtCreation("cloud-init sets a guest up once")},
		"cloud_init.user_data":      {Judge: machine.AtCreation("cloud-init sets a guest up once")},
		"cloud_init.network_config": {Judge: machine.AtCreation("cloud-init sets a guest up once")},

		"additional_disk":  {Judge: machine.Disks},
		networkAttr:        {Judge: machine.AtStart("QEMU gets its network cards when it starts")},
		"restart_triggers": {Judge: machine.AtStart("a restart for it was asked for")},
		"ssh.user":         {Judge: machine.Live("only how vmctl logs in")},
		identityAttr:       {Judge: machine.AtStart(keysAtBoot)},
		othersAttr:         {Judge: judgeOthers},
		"ssh.host_key":     {Judge: machine.Live("only how vmctl checks the guest")},

		"id":       machine.Stays(),
		"address":  machine.AddressIn(),
		"ssh_port": {Computed: true},
		"ports":    machine.Ports(),
	},
	spec.Disk: {
		"name":   {},
		"size":   {Judge: machine.Grows},
		"format": {},

		"id":   machine.Stays(),
		"path": {Computed: true},
	},
	spec.Network: {
		"name":     {},
		"cidr":     {},
		"internal": {},

		"id": machine.Stays(),
	},
}

// judgeOthers judges an edit of the other people's keys: a running guest needs a restart to
// get them.
func judgeOthers(before, after cty.Value, running bool) providers.Verdict {
	if slices.Equal(machine.Lines(before), machine.Lines(after)) {
		return providers.Verdict{Applies: providers.Live, Reason: "the same keys"}
	}
	return machine.AtStart(keysAtBoot)(before, after, running)
}

func judgeForwards(before, after cty.Value, running bool) providers.Verdict {
	if err := checkForwards(after); err != nil {
		return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
	}
	return machine.AtStart("QEMU gets its forwarded ports when it starts")(before, after, running)
}
