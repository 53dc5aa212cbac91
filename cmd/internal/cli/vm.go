package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) vmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vm",
		Short: "Start, stop and enter VMs, and read their consoles",
		Long: "Start, stop and enter VMs, and read their consoles.\n\n" +
			"NAME is a VM's address (vm.dev, 'vm.web[\"a\"]'), or its last part (dev) if no other\n" +
			"VM has it. Apply and destroy make and remove VMs.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(
		a.startCommand(), a.stopCommand(), a.restartCommand(), a.rekeyCommand(),
		a.shellCommand(), a.execCommand(), a.copyCommand(), a.logsCommand(), a.editCommand(), a.sshConfigCommand(),
	)
	return cmd
}
