package cli

import (
	"github.com/spf13/cobra"

	"vmctl/providers/terraform"
)

// terraformCall is the name of the command that becomes Terraform.
const terraformCall = "terraform-call"

// arguments returns the arguments of the command. terraform-exec starts vmctl with those of Terraform, and names
// no command.
func (a *app) arguments() []string {
	if a.getenv(terraform.CallVariable) != "" {
		return append([]string{terraformCall}, a.env.Args...)
	}
	return append([]string{}, a.env.Args...) // for nil, cobra takes those of the process
}

// terraformCallCommand returns the command that the provider terraform runs in place of Terraform.
func (a *app) terraformCallCommand() *cobra.Command {
	return &cobra.Command{
		Use: terraformCall, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		Short: "Become Terraform",
		RunE: func(cmd *cobra.Command, args []string) error {
			return terraform.Call(cmd.Context(), a.getenv(terraform.CallVariable), args, a.env.Environ)
		},
	}
}
