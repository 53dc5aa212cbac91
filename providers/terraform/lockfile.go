package terraform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"vmctl/providers"
	"vmctl/spec"
)

// lockFileName is the name of the file in which a module keeps the versions and checksums of its providers.
const lockFileName = ".terraform.lock.hcl"

// registry returns the registry from which a tool takes a provider whose source names none.
func registry(tool spec.TerraformTool) string {
	if tool == spec.OpenTofu {
		return "registry.opentofu.org/"
	}
	return "registry.terraform.io/"
}

func otherTool(tool spec.TerraformTool) spec.TerraformTool {
	if tool == spec.OpenTofu {
		return spec.Terraform
	}
	return spec.OpenTofu
}

// explainLockFile adds to the failure of init that the lock file of the module was written by the other tool alone: vmctl
// writes none.
func (p *Provider) explainLockFile(err error) error {
	text, unread := os.ReadFile(filepath.Join(p.module, lockFileName))
	tool := p.tool()
	other := otherTool(tool)
	has := func(t spec.TerraformTool) bool { return strings.Contains(string(text), `provider "`+registry(t)) }
	if unread != nil || has(tool) || !has(other) {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_lockfile", Seen: said(err),
		Err: errors.Join(fmt.Errorf("prepare %s: its %s has the providers of %s, and none of %s", p.module, lockFileName, other, tool), err),
		Next: providers.Say("add those of "+string(tool)+": "+p.commandLine()("init", "-backend=false"),
			fmt.Sprintf("or run %s: binary = %q in provider \"terraform\" %q", other, programOf(other), p.settings.Name)),
	}
}

// programOf returns the usual name of the program of a tool.
func programOf(tool spec.TerraformTool) string {
	if tool == spec.OpenTofu {
		return "tofu"
	}
	return TypeName
}
