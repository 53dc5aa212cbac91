package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) vmCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vm",
		Short: "Start, stop and enter VMs",
		Args:  cobra.ArbitraryArgs,
		RunE:  a.group,
	}
	cmd.AddCommand(
		a.startCommand(), a.stopCommand(), a.restartCommand(),
		a.shellCommand(), a.execCommand(), a.sshConfigCommand(),
	)
	return cmd
}
