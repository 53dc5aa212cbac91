package terraform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vmctl/internal/shellword"
	"vmctl/providers"
	"vmctl/spec"
)

// erroredPath returns the file in which Terraform leaves a state that it could not write to its place.
func (p *Provider) erroredPath() string { return filepath.Join(p.module, "errored.tfstate") }

// checkErrored refuses to go on with a workspace whose last state may lie in that file: Terraform would make again what it
// has made. s may be nil.
func (p *Provider) checkErrored(m spec.TerraformModule, s *seen) error {
	text, err := os.ReadFile(p.erroredPath())
	if errors.Is(err, fs.ErrNotExist) || s == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if left, err := readState(text); err == nil && s.state.Lineage != "" && left.Lineage != s.state.Lineage {
		return nil // that of another VM
	}
	place := shellword.Join([]string{"install", "-m", "600", p.erroredPath(), p.statePath(s.name)})
	if isRemote(m) {
		place = p.commandLine(p.settingsOf(m, s.name)...)("state", "push", p.erroredPath())
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "terraform_errored",
		Err: fmt.Errorf("the state of %s could not be written, and %s left it in %s", s.name, p.tool(), p.erroredPath()),
		Next: providers.Say(
			"put it in its place: "+place+" && "+shellword.Join([]string{"rm", p.erroredPath()}),
			"or, if it is of another VM, move it aside",
		),
	}
}
