package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
)

type completionDocument struct {
	FormatVersion string `json:"format_version"`
	Shell         string `json:"shell"`
	Script        string `json:"script"`
}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write a shell's completion script",
		Long:  "Write a shell's completion script. For bash: source <(vmctl completion bash)",
		Args:  one("the name of a shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var script bytes.Buffer
			var err error
			switch args[0] {
			case "bash":
				err = cmd.Root().GenBashCompletionV2(&script, true)
			case "zsh":
				err = cmd.Root().GenZshCompletion(&script)
			case "fish":
				err = cmd.Root().GenFishCompletion(&script, true)
			case "powershell":
				err = cmd.Root().GenPowerShellCompletionWithDesc(&script)
			default:
				return rejected("usage", "write completion for "+quoted(args[0])+": unknown shell", "the shells are bash, zsh, fish and powershell")
			}
			if err != nil {
				return err
			}
			a.show(completionDocument{FormatVersion: view.FormatVersion, Shell: args[0], Script: script.String()}, func(view.Screen) {
				_, err = a.stdout.Write(script.Bytes())
			})
			return err
		},
	}
}
