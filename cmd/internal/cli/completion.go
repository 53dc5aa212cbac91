package cli

import (
	"bytes"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
)

type completionDocument struct {
	FormatVersion string `json:"format_version"`
	Shell         string `json:"shell"`
	Script        string `json:"script"`
}

// zshCompletion writes the completion script for zsh. The script doubles the backslashes in
// names, since zsh takes a backslash before a colon as its own.
func zshCompletion(root *cobra.Command, script *bytes.Buffer) error {
	var made bytes.Buffer
	if err := root.GenZshCompletion(&made); err != nil {
		return err
	}
	const colons = `comp=${comp//:/\\:}`
	if strings.Count(made.String(), colons) != 1 {
		return errors.New("write completion for zsh: the library makes another script by now")
	}
	script.WriteString(strings.Replace(made.String(), colons, `comp=${comp//\\/\\\\}; `+colons, 1))
	return nil
}

func (a *app) completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write a shell's completion script",
		Long: "Write a shell's completion script. For bash, with the package bash-completion, and\n" +
			"for zsh: source <(vmctl completion bash). For fish: vmctl completion fish | source.\n\n" +
			"The script completes names from the files and the state. For commands that stop or\n" +
			"enter a VM it completes the names of VMs that run, if their systems answer in time.",
		Args: one("the name of a shell: bash, zsh, fish or powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var script bytes.Buffer
			var err error
			switch args[0] {
			case "bash":
				err = cmd.Root().GenBashCompletionV2(&script, true)
			case "zsh":
				err = zshCompletion(cmd.Root(), &script)
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
