package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/providers/lima"
)

type versionDocument struct {
	FormatVersion string   `json:"format_version"`
	Version       string   `json:"version"`
	Go            string   `json:"go"`
	Platform      string   `json:"platform"`
	Providers     []string `json:"providers"`
	Lima          string   `json:"lima,omitempty"` // the version in vmctl-lima; absent: it is not there
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of vmctl",
		Args:  between(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return a.version() },
	}
}

func (a *app) version() error {
	b := a.env.Build
	doc := versionDocument{
		FormatVersion: view.FormatVersion, Version: b.Version, Go: b.Go, Platform: b.Platform, Providers: a.typeNames(),
	}
	if v, err := lima.Version(limaProgram(a.env)); err == nil {
		doc.Lima = v
	}
	a.show(doc, func(s view.Screen) {
		view.Note(s, fmt.Sprintf("vmctl %s (%s, %s)", b.Version, b.Go, b.Platform))
		if doc.Lima != "" {
			view.Note(s, "Lima "+doc.Lima)
		}
	})
	return nil
}
