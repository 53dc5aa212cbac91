package terraform

import (
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// kinds lists every attribute that this provider supports. Sizes, images and networks are the module's.
var kinds = map[spec.Kind]map[string]providers.Attribute{
	spec.VM: {
		"variables":      {Judge: machine.Live("its module is planned with the new values")},
		"variables_json": {Judge: machine.Live("its module is planned with the new values")},
		"outputs":        {Judge: machine.Live("the outputs are read again")},
		"ssh.user":       {Judge: machine.Live(sshReason)},
		"ssh.identity":   {Judge: machine.Live(sshReason)},
		"ssh.host_key":   {Judge: machine.Live(sshReason)},

		"id":       {Computed: true},
		"address":  {Computed: true},
		"ssh_port": {Computed: true},
	},
}

const sshReason = "it is used at the next login"
