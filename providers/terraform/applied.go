package terraform

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vmctl/internal/atomicfile"
	"vmctl/providers"
	"vmctl/spec"
)

// appliedPath returns the file with the digest of the module that was applied last to a workspace.
func (p *Provider) appliedPath(name string) string {
	return filepath.Join(p.settings.Dir, "applied", name)
}

// settled returns the module after a run of Terraform, which may itself have written files below the folder of the module. If its
// configuration changed meanwhile, somebody has edited it, and the module is returned as it was.
func (p *Provider) settled(before spec.TerraformModule) (spec.TerraformModule, error) {
	now, err := p.readModule()
	if err != nil || now.Setup != before.Setup {
		return before, err
	}
	return now, nil
}

// noteApplied notes which module an apply has carried out.
func (j *job) noteApplied() error {
	path := j.p.appliedPath(j.seen.name)
	module, err := j.p.settled(j.module)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(module.Digest+"\n"), 0o600)
}

// moduleDue says that the files of the module changed since it was applied; nil: they did not. Only Terraform tells what that means
// for a VM.
func (p *Provider) moduleDue(s *seen, m spec.TerraformModule) *providers.Due {
	text, err := os.ReadFile(p.appliedPath(s.name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &providers.Due{Op: opApply, Reason: "vmctl has no note of the module with which it was applied last"}
	case err != nil:
		return &providers.Due{Op: opApply, Reason: "the note of the module with which it was applied last cannot be read: " + err.Error()}
	case strings.TrimSpace(string(text)) != m.Digest:
		return &providers.Due{Op: opApply, Reason: "files of its module changed since it was applied last"}
	}
	return nil
}
