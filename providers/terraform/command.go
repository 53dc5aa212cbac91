package terraform

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// removal returns the commands that remove the shared resources that stayed, for a user to type.
func (p *Provider) removal(m spec.TerraformModule) []string {
	data := setting{"TF_DATA_DIR", filepath.Join(p.sharedDir(), "data")}
	var all []string
	if m.Backend != "" || m.Providers {
		args := []string{"init", "-lockfile=readonly"}
		if !p.backend.none() {
			args = append(args, "-backend-config=FILE")
		}
		all = append(all, "prepare to remove them: "+p.commandLine(data)(args...))
	}
	if !isRemote(m) {
		return append(all, "remove them: "+p.commandLine(data)("destroy", "-state="+p.keptPath()))
	}
	// The backend takes no file in place of a workspace.
	in := p.commandLine(data, setting{"TF_WORKSPACE", releasedPrefix + "shared" + separator + encode(p.settings.Project.Lineage())})
	return append(all, "give them a workspace: "+in("state", "push", p.keptPath()), "remove them: "+in("destroy"))
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

// settingsOf returns the variables of the environment with which a command is about a workspace.
func (p *Provider) settingsOf(m spec.TerraformModule, workspace string) []setting {
	var env []setting
	if p.backend.none() { // else nothing about the backend stays there
		env = append(env, setting{"TF_DATA_DIR", p.dataPath(workspace)})
	}
	if m.Backend != "" {
		env = append(env, setting{"TF_WORKSPACE", workspace})
	}
	return env
}

// onState returns a function that writes commands on the state of a workspace, for a user to type. false: the module
// cannot be read.
func (p *Provider) onState(workspace string) (command func(words []string, address string) string, ok bool) {
	m, err := p.readModule()
	if err != nil {
		return nil, false
	}
	env, option := p.settingsOf(m, workspace), []string(nil)
	if state := p.state(m, workspace); state != "" {
		option = []string{"-state=" + state}
	}
	return func(words []string, address string) string {
		args := slices.Concat(words, option)
		if address != "" {
			args = append(args, address)
		}
		return p.commandLine(env...)(args...)
	}, true
}

// untaint returns the advice about what is tainted in a workspace. nil: the module cannot be read.
func (p *Provider) untaint(workspace string, addresses []string) []providers.Advice {
	command, ok := p.onState(workspace)
	if !ok {
		return nil
	}
	var all []string
	for _, address := range addresses {
		all = append(all, "if it is whole after all: "+command([]string{"untaint"}, address),
			"if it is gone, or to be left alone: "+command([]string{"state", "rm"}, address))
	}
	return providers.Say(all...)
}

// forgetOld returns the advice about deposed copies in a workspace. nil: the module cannot be read.
func (p *Provider) forgetOld(workspace string, copies []located) []providers.Advice {
	command, ok := p.onState(workspace)
	if !ok {
		return nil
	}
	var all []string
	for _, c := range copies {
		all = append(all, fmt.Sprintf("if %s is to leave it alone, forget %s with its copy: %s", p.tool(), c.address, command([]string{"state", "rm"}, c.address)),
			"then take over the new one: "+command([]string{"import"}, c.address)+" ID")
	}
	return providers.Say(all...)
}
