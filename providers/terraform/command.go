package terraform

import (
	"path/filepath"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/providers"
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

// untaint returns the advice to keep what is tainted in a workspace. nil: the module cannot be read.
func (p *Provider) untaint(workspace string, addresses []string) []providers.Advice {
	m, err := p.readModule()
	if err != nil {
		return nil
	}
	env, args := []setting{{"TF_DATA_DIR", p.dataPath(workspace)}}, []string{"untaint"}
	if state := p.state(m, workspace); state != "" {
		args = append(args, "-state="+state)
	} else {
		env = append(env, setting{"TF_WORKSPACE", workspace})
	}
	var all []string
	for _, address := range addresses {
		all = append(all, "if it is whole after all: "+p.commandLine(env...)(append(args[:len(args):len(args)], address)...))
	}
	return providers.Say(all...)
}
