package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-exec/tfexec"

	"vmctl/providers"
	"vmctl/spec"
)

// The oldest versions that have everything that a step uses.
const (
	oldestTerraform = "1.5.0"
	oldestTofu      = "1.6.0"
)

func oldestOf(tool spec.TerraformTool) string {
	if tool == spec.OpenTofu {
		return oldestTofu
	}
	return oldestTerraform
}

// observeHost says what this machine lacks to run the module.
func (p *Provider) observeHost(ctx context.Context, inv *providers.Inventory) {
	tool, found, err := p.version(ctx)
	if _, unread := p.readModule(); unread != nil {
		err = unread
	}
	if err != nil {
		inv.Missing[spec.VM] = providers.Unread(err)
		return
	}
	inv.Host[string(tool)] = found.String()
	if oldest := oldestOf(tool); found.LessThan(version.Must(version.NewVersion(oldest))) {
		inv.Missing[spec.VM] = &providers.Problem{
			Outcome: providers.Failed, Code: "terraform_old",
			Err:  fmt.Errorf("%s %s is too old for provider.terraform.%s, which needs %s %s or newer", tool, found, p.settings.Name, tool, oldest),
			Next: providers.Say("install a newer "+string(tool), "or name another program as binary in the provider block"),
		}
	}
}

// tool returns the program that runs the module: what it tells of itself, or until it was asked, what it is called.
func (p *Provider) tool() spec.TerraformTool {
	p.asking.Lock()
	defer p.asking.Unlock()
	switch {
	case p.asked.file != nil:
		return p.asked.tool
	case strings.HasPrefix(filepath.Base(p.binary), "tofu"):
		return spec.OpenTofu
	default:
		return spec.Terraform
	}
}

// told holds the words of a program about itself.
type told struct {
	tool    spec.TerraformTool
	version *version.Version
	text    string      // of version -json
	file    os.FileInfo // the program as it was then; nil: it was not asked yet
}

// by reports whether the program is still the one that said so.
func (t told) by(file os.FileInfo) bool {
	return t.file != nil && os.SameFile(t.file, file) && t.file.Size() == file.Size() && t.file.ModTime().Equal(file.ModTime())
}

// version returns the name and the version of the program, which is asked once.
func (p *Provider) version(ctx context.Context) (spec.TerraformTool, *version.Version, error) {
	program, err := p.findProgram()
	if err != nil {
		return "", nil, err
	}
	file, err := os.Stat(program)
	if err != nil {
		return "", nil, err
	}
	p.asking.Lock()
	now := p.asked
	p.asking.Unlock()
	if now.by(file) {
		return now.tool, now.version, nil
	}
	if now, err = p.ask(ctx); err != nil {
		return "", nil, fmt.Errorf("ask %s for its version: %w", p.binary, err)
	}
	now.file = file
	p.asking.Lock()
	defer p.asking.Unlock()
	p.asked = now
	return now.tool, now.version, nil
}

// ask asks the program about itself.
func (p *Provider) ask(ctx context.Context) (now told, err error) {
	s, err := p.openSession(ctx, p.module, "")
	if err != nil {
		return told{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.order.Version = ""
	var out bytes.Buffer
	s.tf.SetStdout(&out)
	err = s.run(func(tf *tfexec.Terraform) (err error) {
		now.version, _, err = tf.Version(ctx, true)
		return err
	})
	now.tool, now.text = toolOf(out.Bytes()), out.String()
	return now, err
}

// toolOf tells the tool by what it writes for version -json. Both write terraform_version; Terraform alone tells whether a
// newer one is out. Source: Terraform 1.5 and OpenTofu 1.6, internal/command/version.go.
func toolOf(text []byte) spec.TerraformTool {
	var said struct {
		Outdated *bool `json:"terraform_outdated"`
	}
	if json.Unmarshal(text, &said) == nil && said.Outdated == nil {
		return spec.OpenTofu
	}
	return spec.Terraform
}

// readModule reads the module, and refuses one whose states vmctl could not read, or not tell apart.
func (p *Provider) readModule() (spec.TerraformModule, error) {
	m, err := p.modules.Read(p.module, p.tool())
	if err != nil {
		return m, err
	}
	if slices.Contains(withoutWorkspaces(), m.Backend) {
		return m, p.noWorkspaces(m)
	}
	if m.OneWorkspace {
		return m, p.oneWorkspace(m)
	}
	if err := p.checkBackendConfig(m); err != nil {
		return m, err
	}
	return m, p.checkEncryption(m)
}

// encryptionVariable configures the encryption of states in place of the module.
const encryptionVariable = "TF_ENCRYPTION"

// checkEncryption refuses a module whose states OpenTofu would encrypt: vmctl reads them itself.
func (p *Provider) checkEncryption(m spec.TerraformModule) error {
	if p.tool() != spec.OpenTofu {
		return nil
	}
	where, next := "", ""
	switch {
	case m.Encryption:
		where, next = "the module "+p.module+" has an encryption block", "take the encryption block out: vmctl keeps the states in the data directory, which only its user can read"
	case p.environment()[encryptionVariable] != "":
		where, next = encryptionVariable+" is set in the environment", "unset "+encryptionVariable
	default:
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_encrypted", Next: providers.Say(next),
		Err: fmt.Errorf("provider.terraform.%s: %s: OpenTofu would encrypt its states, and vmctl reads plain states only", p.settings.Name, where),
	}
}
