package sim

import (
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

type judge = func(before, after cty.Value, running bool) providers.Verdict

// kinds has every attribute that this provider supports.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"name":         {},
		"running":      {Judge: always(providers.Live, "starts or stops it")},
		"cpus":         {Judge: atStart("its process gets its CPUs when it starts")},
		"memory":       {Judge: atStart("its process gets its memory when it starts")},
		"accel":        {Judge: atStart("its process gets its accelerator when it starts")},
		"boot":         {Judge: atStart("a kernel is booted when its process starts")},
		"boot.kernel":  {Judge: always(providers.Live, "another path to the same content")},
		"boot.initrd":  {Judge: always(providers.Live, "another path to the same content")},
		"port_forward": {Judge: judgeForwards},
		"ssh.user":     {Judge: always(providers.Live, sshReason)},
		"ssh.identity": {Judge: always(providers.Live, sshReason)},
		"ssh.host_key": {Judge: always(providers.Live, sshReason)},

		"ssh.wait":         {Judge: always(providers.Live, policyReason)},
		"ssh.wait_timeout": {Judge: always(providers.Live, policyReason)},
		"start":            {Judge: always(providers.Live, policyReason)},
		"stop":             {Judge: always(providers.Live, policyReason)},
		"lifecycle":        {Judge: always(providers.Live, policyReason)},

		"id":       {Computed: true},
		"address":  {Computed: true},
		"ssh_port": {Computed: true},
		"ports":    {Computed: true},
	},
}

const (
	policyReason = "only how vmctl treats it"
	sshReason    = "nobody logs into a simulated guest"
)

func always(a providers.Applies, reason string) judge {
	return func(cty.Value, cty.Value, bool) providers.Verdict {
		return providers.Verdict{Applies: a, Reason: reason}
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
