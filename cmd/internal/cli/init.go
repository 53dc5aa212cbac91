package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vmctl/cmd/internal/view"
	"vmctl/spec"
)

type initDocument struct {
	FormatVersion string `json:"format_version"`
	Project       string `json:"project"`
	ID            string `json:"id"`
	File          string `json:"file"`    // the file that holds the id
	Written       bool   `json:"written"` // false: the file had both already
}

func (a *app) initCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Initialise a project",
		Long: "Write a project name and a random id into the vmctl block of the files, once. The\n" +
			"mark of every object that vmctl makes contains the id. Commit it: every clone of the\n" +
			"files then knows the project's objects. Running init again changes nothing.",
		Args: between(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return a.init(name) },
	}
	cmd.Flags().StringVar(&name, "project", "", "the project's `NAME`, of small letters, digits and dashes (else that of the folder)")
	return cmd
}

func (a *app) init(name string) error {
	dir := a.specDir()
	chosen := name
	if chosen == "" {
		chosen = projectName(filepath.Base(dir))
	}
	if err := spec.CheckProject(chosen); err != nil {
		return rejected("usage", "read --project: "+err.Error(), "--project="+projectName(chosen))
	}
	id, err := newID(a.env.Rand)
	if err != nil {
		return err
	}
	file, wrote, err := spec.Init(dir, chosen, id)
	if err != nil {
		return newProblem(classRejected, "init", err.Error(), "see the mistakes of the files: "+a.commandLine("validate", planFlags{}))
	}
	file = a.short(file)
	config, err := a.load()
	if err != nil {
		view.Note(a.errScreen(), file+" has a project and an id. The files have mistakes:")
		return err
	}
	s := config.Settings
	if name != "" && s.Project != name {
		return rejected("project_exists", fmt.Sprintf("%s names the project %q already, not %q", file, s.Project, name),
			"a project keeps its name: it is in the marks and names of its objects")
	}
	doc := initDocument{FormatVersion: view.FormatVersion, Project: s.Project, ID: s.ID, File: file, Written: wrote}
	a.show(doc, func(screen view.Screen) {
		if !doc.Written {
			view.Note(screen, fmt.Sprintf("Project %s has the id %s already, in %s. Nothing was changed.", s.Project, s.ID, file))
			return
		}
		if s.ID != id {
			view.Note(screen, fmt.Sprintf("Wrote project %s into %s, which had the id %s already.", s.Project, file, s.ID))
		} else {
			view.Note(screen, fmt.Sprintf("Wrote project %s with the id %s into %s.", s.Project, s.ID, file))
		}
		view.Note(screen, "Commit that file: every clone knows by the id what this project made.")
	})
	return nil
}

// projectName makes a project's name from the name of a folder: characters that
// spec.CheckProject refuses become dashes.
func projectName(folder string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(folder) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == 31 {
			break
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		return "project"
	}
	return name
}

// newID makes an id of ten letters and digits: 50 bits of random.
func newID(random io.Reader) (string, error) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	id := make([]byte, 10)
	if _, err := io.ReadFull(random, id); err != nil {
		return "", fmt.Errorf("make an id: %w", err)
	}
	for i, b := range id {
		id[i] = letters[b&31]
	}
	return string(id), nil
}
