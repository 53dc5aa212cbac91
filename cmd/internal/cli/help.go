package cli

import (
	"bytes"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
)

type helpDocument struct {
	FormatVersion string `json:"format_version"`
	Command       string `json:"command"`
	Text          string `json:"text"`
}

func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Help about any command",
		Args:  cobra.ArbitraryArgs,
		RunE:  a.help,
	}
}

// help writes the same text as --help.
func (a *app) help(cmd *cobra.Command, args []string) error {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || about == cmd.Root() && len(args) > 0 {
		about, rest = cmd.Root(), args
	}
	if len(rest) > 0 {
		return a.group(about, rest)
	}
	var text bytes.Buffer
	about.InitDefaultHelpFlag()
	about.SetOut(&text)
	if err := about.Help(); err != nil {
		return err
	}
	a.show(helpDocument{FormatVersion: view.FormatVersion, Command: about.CommandPath(), Text: text.String()}, func(view.Screen) {
		a.stdout.keep(write(a.stdout, text.String()))
	})
	return nil
}
