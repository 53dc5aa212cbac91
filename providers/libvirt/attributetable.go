package libvirt

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

type judge = func(before, after cty.Value, running bool) providers.Verdict

// kinds has every attribute that this provider supports.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"name":         {},
		"running":      {Judge: live("starts or stops it")},
		"cpus":         {Judge: atStart("QEMU gets its CPUs when it starts")},
		"memory":       {Judge: atStart("QEMU gets its memory when it starts")},
		"accel":        {Judge: atStart("QEMU gets its accelerator when it starts")},
		"boot":         {Judge: atStart("a kernel is booted when QEMU starts")},
		"boot.kernel":  {Judge: live("another path to the same content")},
		"boot.initrd":  {Judge: live("another path to the same content")},
		"port_forward": {Judge: judgeForwards},

		"image":                     {Judge: atCreation("an image counts when the disk is made from it")},
		"image.source":              {Judge: atCreation("an image counts when the disk is made from it")},
		"image.sha256":              {Judge: atCreation("an image counts when the disk is made from it")},
		"root_disk":                 {Judge: atCreation("only a VM of an image has a disk of its own")},
		"root_disk.size":            {Judge: judgeSize},
		"cloud_init":                {Judge: atCreation("cloud-init sets a guest up once")},
		"cloud_init.user_data":      {Judge: atCreation("cloud-init sets a guest up once")},
		"cloud_init.network_config": {Judge: atCreation("cloud-init sets a guest up once")},

		"additional_disk":  {Judge: judgeDisks},
		"restart_triggers": {Judge: atStart("a restart for it was asked for")},
		"ssh.user":         {Judge: live("only how vmctl logs in")},
		identityAttr:       {Judge: atStart("the guest gets its keys when it boots")},
		othersAttr:         {Judge: judgeOthers},
		keysAttr:           {Judge: atStart("the guest gets its keys when it boots")},
		"ssh.host_key":     {Judge: live("only how vmctl checks the guest")},

		"ssh.wait":         {Judge: live(policyReason)},
		"ssh.wait_timeout": {Judge: live(policyReason)},
		"start":            {Judge: live(policyReason)},
		"stop":             {Judge: live(policyReason)},
		"lifecycle":        {Judge: live(policyReason)},
		"when_busy":        {Judge: live(policyReason)},
		"orphan":           {Judge: live(policyReason)},
		"rollout":          {Judge: live(policyReason)},
		"timeouts":         {Judge: live(policyReason)},

		"id":       machine.Stays(),
		"address":  machine.Stays(),
		"ssh_port": {Computed: true},
		"ports":    machine.Ports(),
	},
	spec.Disk: {
		"name":          {},
		"size":          {Judge: judgeSize},
		"format":        {},
		"on_stale_lock": {Judge: live(policyReason)},
		"timeouts":      {Judge: live(policyReason)},
		"lifecycle":     {Judge: live(policyReason)},

		"id":   machine.Stays(),
		"path": {Computed: true},
	},
}

const policyReason = "only how vmctl treats it"

func live(reason string) judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: reason}
	}
}

// atCreation judges what counts when an object is made, and never again.
func atCreation(reason string) judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Replace, Reason: reason}
	}
}

// atStart judges what QEMU takes from its command line.
func atStart(reason string) judge {
	return func(_, _ cty.Value, running bool) providers.Verdict {
		if running {
			return providers.Verdict{Applies: providers.Restart, Reason: reason}
		}
		return providers.Verdict{Applies: providers.Live, Reason: "it is not running: takes effect at the next start"}
	}
}

// judgeOthers restarts a guest that is to get other keys than it has.
func judgeOthers(before, after cty.Value, running bool) providers.Verdict {
	if slices.Equal(linesOf(before), linesOf(after)) {
		return providers.Verdict{Applies: providers.Live, Reason: "the same keys"}
	}
	return atStart("the guest gets its keys when it boots")(before, after, running)
}

func judgeForwards(before, after cty.Value, running bool) providers.Verdict {
	if _, err := forwardsOf(after); err != nil {
		return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
	}
	return atStart("QEMU gets its forwarded ports when it starts")(before, after, running)
}
