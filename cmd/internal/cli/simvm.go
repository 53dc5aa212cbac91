package cli

import (
	"github.com/spf13/cobra"

	"vmctl/providers/sim"
)

// simVM is the command that runs one VM of a simulated host.
const simVM = "sim-vm"

// simVMCommand is run by the provider sim. Its arguments are for whoever looks at
// the process table.
func (a *app) simVMCommand() *cobra.Command {
	return &cobra.Command{
		Use: simVM, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		Short: "Run one VM of a simulated host",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sim.Run(cmd.Context(), a.env.Stdin, a.env.Stdout, a.env.Stderr)
		},
	}
}
