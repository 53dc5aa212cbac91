package sim

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
		"cpus":         {Judge: atStart("its process gets its CPUs when it starts")},
		"memory":       {Judge: atStart("its process gets its memory when it starts")},
		"accel":        {Judge: atStart("its process gets its accelerator when it starts")},
		"boot":         {Judge: atStart("a kernel is booted when its process starts")},
		"boot.kernel":  {Judge: live("another path to the same content")},
		"boot.initrd":  {Judge: live("another path to the same content")},
		"port_forward": {Judge: judgeForwards},
		"ssh.user":     {Judge: live(sshReason)},
		"ssh.identity": {Judge: live(sshReason)},
		"ssh.host_key": {Judge: live(sshReason)},

		"ssh.authorized_keys": {Judge: live(sshReason)},

		"additional_disk.disk": {Judge: judgeDisks},
		"additional_disk":      {Judge: judgeDisks},
		"image":                {},
		"root_disk":            {},
		"root_disk.size":       {Judge: judgeSize},
		"cloud_init":           {Judge: atStart("the guest reads it when it starts")},
		"restart_triggers":     {Judge: atStart("that is what they are for")},

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
		"ssh_port": machine.Stays(), // nobody listens for SSH
		"ports":    machine.Ports(),
	},
	spec.Disk: {
		"name":   {},
		"size":   {Judge: judgeSize},
		"format": {},

		"on_stale_lock": {Judge: live(policyReason)},
		"lifecycle":     {Judge: live(policyReason)},
		"timeouts":      {Judge: live(policyReason)},

		"id":   machine.Stays(),
		"path": machine.Stays(),
	},
}

// insideKinds has what the guests of its VMs can hold.
var insideKinds = map[spec.Kind]map[string]providers.Attribute{
	spec.GuestFile: {
		"vm":        {},
		"path":      {},
		"content":   {Judge: live("written while the guest runs")},
		"lifecycle": {Judge: live(policyReason)},

		"id": {Computed: true},
	},
}

const (
	policyReason = "only how vmctl treats it"
	sshReason    = "nobody logs into a simulated guest"
)

func live(reason string) judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: providers.Live, Reason: reason}
	}
}

// atStart judges what a VM's process takes from its start.
func atStart(reason string) judge {
	return func(_, _ cty.Value, running bool) providers.Verdict {
		if running {
			return providers.Verdict{Applies: providers.Restart, Reason: reason}
		}
		return providers.Verdict{Applies: providers.Live, Reason: "it is not running: takes effect at the next start"}
	}
}

func judgeForwards(before, after cty.Value, running bool) providers.Verdict {
	if _, err := forwardsOf(after); err != nil {
		return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
	}
	return atStart("its process gets its forwarded ports when it starts")(before, after, running)
}

// judgeDisks attaches to a VM that runs, and takes nothing from it: the guest may
// be using it.
func judgeDisks(before, after cty.Value, running bool) providers.Verdict {
	if _, err := disksOf(after, nil); err != nil {
		return providers.Verdict{Applies: providers.Refused, Reason: err.Error()}
	}
	had, gets := addresses(before), addresses(after)
	if !running || !slices.ContainsFunc(had, func(a string) bool { return !slices.Contains(gets, a) }) {
		if running {
			return live("attached while it runs")(before, after, running)
		}
	}
	return atStart("the guest may be using what is detached")(before, after, running)
}

func addresses(disks cty.Value) []string {
	if !known(disks) {
		return nil
	}
	var all []string
	for _, e := range disks.AsValueSlice() {
		all = append(all, text(e, "disk"))
	}
	return all
}

func judgeSize(before, after cty.Value, _ bool) providers.Verdict {
	if known(before) && known(after) && after.LessThan(before).True() {
		return providers.Verdict{Applies: providers.Refused, Reason: "a disk does not shrink: what is at its end would be lost"}
	}
	return providers.Verdict{Applies: providers.Live, Reason: "grows in place, running or not"}
}
