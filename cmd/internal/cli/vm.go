package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) vmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vm",
		Short: "Start, stop, enter and look into VMs",
		Long: "Start, stop, enter and look into VMs.\n\n" +
			"NAME is a VM's address or its last part where only one has it: vm.dev, dev,\n" +
			"'vm.web[\"a\"]'. What makes or removes a VM is apply and destroy.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(
		a.startCommand(), a.stopCommand(), a.restartCommand(), a.rekeyCommand(),
		a.shellCommand(), a.execCommand(), a.logsCommand(), a.editCommand(), a.sshConfigCommand(),
	)
	return cmd
}
