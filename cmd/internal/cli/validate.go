package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
)

type validateDocument struct {
	FormatVersion string                    `json:"format_version"`
	Valid         bool                      `json:"valid"`
	Resources     []string                  `json:"resources"`
	Diagnostics   []view.DiagnosticDocument `json:"diagnostics"`
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate",
		Short: "Check the files, and the templates that they name",
		Args:  between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.fetchElsewhere(cmd.Context())
			config, diags := a.readSpec(nil)
			if err := cmd.Context().Err(); err != nil {
				return interruptedReading("validate", err)
			}
			config, err := a.sound(config, append(diags, unreadTexts(config)...))
			if err != nil {
				return err
			}
			doc := validateDocument{
				FormatVersion: view.FormatVersion, Valid: true, Resources: []string{}, Diagnostics: view.DiagnosticsJSON(nil),
			}
			for _, r := range config.Resources {
				doc.Resources = append(doc.Resources, r.Address.String())
			}
			a.show(doc, func(s view.Screen) {
				view.Note(s, fmt.Sprintf("The files are valid: %s.", counted(len(config.Resources), "resource")))
			})
			return nil
		},
	}
}

func counted(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
