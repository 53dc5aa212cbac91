package cli

import (
	"os"

	"github.com/spf13/cobra"

	"vmctl/internal/sshx"
)

func (a *app) shellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "shell NAME",
		Short: "Open a shell in a VM that runs",
		Long: "Open the login shell of the VM's SSH user. The exit code is the shell's, or 255 if\n" +
			"no shell was opened. A VM that is off is not started.\n\n" +
			asLimactl,
		Args: one("the name of a VM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			stdin, ok := a.env.Stdin.(*os.File)
			if !ok || a.global.json {
				return before{err: rejected("usage", cmd.CommandPath()+" is for people: it writes no document, and needs a terminal or a file to read from",
					a.commandLine("vm exec", planFlags{}, "--json", "NAME", "--", "COMMAND"))}
			}
			return a.inside(cmd.Context(), visit{vm: args[0], command: "vmctl vm shell", way: func(v observedAddress) (func() (int, error), error) {
				values, folder, err := a.visitor(v)
				if err != nil {
					return nil, err
				}
				t, err := a.targetAs(v, values)
				return func() (int, error) {
					return sshx.Shell(cmd.Context(), t, sshx.Terminal{
						In: stdin, Out: a.stdout, Err: a.stderr, Type: a.getenv("TERM"), Line: shellIn(folder),
					})
				}, err
			}})
		},
	}
}
