package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/internal/atomicfile"
	"vmctl/spec"
)

type fmtDocument struct {
	FormatVersion string   `json:"format_version"`
	Changed       []string `json:"changed"` // files that were, or with --check would be, written
}

func (a *app) fmtCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt",
		Short: "Format the files",
		Args:  between(0, 0, ""),
		RunE:  func(*cobra.Command, []string) error { return a.format(check) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing; exit with 3 if a file is not formatted")
	return cmd
}

func (a *app) format(check bool) error {
	files, err := spec.SpecFiles(a.specDir())
	if err != nil {
		return err
	}
	doc := fmtDocument{FormatVersion: view.FormatVersion, Changed: []string{}}
	for _, file := range files {
		changed, err := a.formatFile(file, check)
		if err != nil {
			return err
		}
		if changed {
			doc.Changed = append(doc.Changed, a.short(file))
		}
	}
	a.show(doc, func(s view.Screen) {
		for _, file := range doc.Changed {
			view.Note(s, file)
		}
	})
	if check && len(doc.Changed) > 0 {
		return status{code: classRejected.code()}
	}
	return nil
}

// formatFile formats one file; with check it writes nothing. changed reports whether the file
// was not formatted.
func (a *app) formatFile(file string, check bool) (changed bool, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return false, fmt.Errorf("format: %w", err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("format: %w", err)
	}
	formatted, diags := spec.Format(source, file)
	if diags.HasErrors() {
		return false, a.mistakes(diags, map[string]*hcl.File{file: {Bytes: source}})
	}
	if bytes.Equal(source, formatted) || check {
		return !bytes.Equal(source, formatted), nil
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // the file is replaced, not the link to it
	}
	return true, atomicfile.Write(file, formatted, info.Mode().Perm())
}
