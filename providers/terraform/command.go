package terraform

import (
	"path/filepath"
	"strings"

	"vmctl/internal/shellword"
)

// sharedCommand returns a command on the shared resources that stayed, for a user to type.
func (p *Provider) sharedCommand(args ...string) string {
	return p.commandLine(setting{"TF_DATA_DIR", filepath.Join(p.sharedDir(), "data")})(args...)
}

// setting is a variable of the environment.
type setting struct{ name, value string }

// commandLine returns a function that writes commands of Terraform on the module, for a user to type.
func (p *Provider) commandLine(env ...setting) func(args ...string) string {
	binary := p.binary
	if strings.ContainsRune(binary, filepath.Separator) && !filepath.IsAbs(binary) {
		binary = filepath.Join(p.settings.Files, binary)
	}
	return func(args ...string) string {
		var b strings.Builder
		for _, s := range env {
			b.WriteString(s.name + "=" + shellword.Quote(s.value) + " ")
		}
		return b.String() + shellword.Join(append([]string{binary, "-chdir=" + p.module}, args...))
	}
}
