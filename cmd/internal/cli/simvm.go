package cli

import (
	"github.com/spf13/cobra"

	"vmctl/providers/sim"
)

// simVM is the name of the command that runs one VM of a simulated host.
const simVM = "sim-vm"

// simVMCommand returns the command that the provider sim runs. The arguments only serve
// readers of the process table.
func (a *app) simVMCommand() *cobra.Command {
	return &cobra.Command{
		Use: simVM, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		Short: "Run one VM of a simulated host",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sim.Run(cmd.Context(), a.env.Stdin, a.env.Stdout, a.env.Stderr)
		},
	}
}
