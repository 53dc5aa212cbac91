package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"

	"vmctl/providers"
	"vmctl/spec"
)

// remoteStates are states that a backend of the module keeps elsewhere. Terraform alone reads them, and would create a workspace
// that it is asked to read: only what is listed is read.
type remoteStates struct {
	p      *Provider
	module spec.TerraformModule
}

// listFolder is the name of the data folder for what is asked of all workspaces.
const listFolder = "list"

// open opens a session for a workspace; "": for none. All of them use what one init has prepared.
func (r remoteStates) open(ctx context.Context, name string) (*session, error) {
	p := r.p
	p.listing.Lock()
	defer p.listing.Unlock()
	lister := p.listers[r.module.Setup]
	if lister == nil {
		s, err := p.openSession(ctx, p.module, p.dataPath(listFolder))
		if err != nil {
			return nil, err
		}
		if err := p.prepare(ctx, s, r.module, setup{dir: p.dataPath(listFolder), backend: p.backend}); err != nil {
			return nil, errors.Join(inWords(err), s.close())
		}
		if p.listers == nil {
			p.listers = map[string]*session{}
		}
		p.listers[r.module.Setup], lister = s, s
	}
	s, err := p.openSession(ctx, p.module, lister.env["TF_DATA_DIR"])
	if err != nil {
		return nil, err
	}
	s.order.Workspace = name
	return s, nil
}

// run runs a command for a workspace; "": for none.
func (r remoteStates) run(ctx context.Context, name string, command func(*tfexec.Terraform) error) (err error) {
	s, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return inWords(unlessCreating(ctx, func() error { return s.run(command) }))
}

func (r remoteStates) list(ctx context.Context) ([]workspace, error) {
	var names []string
	err := r.run(ctx, "", func(tf *tfexec.Terraform) (err error) {
		names, _, err = tf.WorkspaceList(ctx)
		return err
	})
	if err != nil && strings.Contains(err.Error(), "workspaces not supported") {
		return nil, r.p.noWorkspaces(r.module)
	}
	return r.p.ours(names), err
}

func (r remoteStates) read(ctx context.Context, name string) ([]byte, error) {
	text := ""
	err := r.run(ctx, name, func(tf *tfexec.Terraform) (err error) {
		text, err = tf.StatePull(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return []byte(text), nil
}

func (r remoteStates) write(ctx context.Context, s *session, _ string, text []byte) error {
	return inWords(s.push(ctx, text))
}

func (r remoteStates) remove(ctx context.Context, name string) error {
	err := r.run(ctx, "", func(tf *tfexec.Terraform) error {
		return tf.WorkspaceDelete(ctx, name, tfexec.LockTimeout(r.p.lockWait()))
	})
	if err != nil {
		return err
	}
	return r.p.removeFolders(name)
}

// release copies the state to a workspace that is not vmctl's, empties the old one, and removes that: Terraform renames none. A
// run that was killed between is repeated.
func (r remoteStates) release(ctx context.Context, name string) (place string, err error) {
	to := releasedPrefix + strings.TrimPrefix(name, prefix+separator)
	text, err := r.read(ctx, name)
	if err != nil {
		return "", err
	}
	if left, err := entriesOf(text); err != nil || len(left) > 0 {
		if err == nil {
			err = r.copyTo(ctx, to, text)
		}
		if err == nil {
			text, err = emptied(text)
		}
		if err == nil {
			err = r.pushTo(ctx, name, text)
		}
		if err != nil {
			return "", err
		}
	}
	return "the workspace " + to, r.remove(ctx, name)
}

// copyTo makes a workspace with a copy of a state, unless it has one.
func (r remoteStates) copyTo(ctx context.Context, to string, text []byte) error {
	there, err := r.read(ctx, to) // Terraform makes it
	if err != nil {
		return err
	}
	if all, err := entriesOf(there); err != nil || len(all) > 0 {
		return err
	}
	return r.pushTo(ctx, to, text)
}

func (r remoteStates) pushTo(ctx context.Context, name string, text []byte) (err error) {
	s, err := r.open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return inWords(s.push(ctx, text))
}

// emptied returns a state without its resources and outputs, as a later one.
func emptied(text []byte) ([]byte, error) {
	raw, _, err := parseRaw(text)
	if err != nil {
		return nil, err
	}
	raw["outputs"] = json.RawMessage("{}")
	if text, err = json.Marshal(raw); err != nil {
		return nil, err
	}
	return stateEdit{drop: func(string) bool { return true }}.apply(text)
}

// push replaces the state of the workspace by a later one.
func (s *session) push(ctx context.Context, text []byte) error {
	path := filepath.Join(s.dir, "pushed")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return s.edit(ctx, []string{"state", "push", "-lock-timeout=" + s.lockWait, path}, nil)
}

// withoutWorkspaces lists the backends that keep one state. Source: Terraform 1.11, internal/backend/remote-state.
func withoutWorkspaces() []string { return []string{"http"} }

// noWorkspaces refuses a backend that keeps one state for all VMs.
func (p *Provider) noWorkspaces(m spec.TerraformModule) error {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_backend",
		Next: providers.Say("use a backend that has workspaces, such as s3, gcs, azurerm, consul, kubernetes or pg",
			"or take the backend block out: vmctl then keeps the states in the data directory"),
		Err: fmt.Errorf("provider.terraform.%s: the backend %s of the module %s keeps one state, and each VM needs a workspace with its own", p.settings.Name, m.Backend, p.module),
	}
}

// oneWorkspace refuses a block that names the one workspace that it uses. Source: Terraform 1.11, internal/cloud/backend.go and
// internal/backend/remote/backend.go.
func (p *Provider) oneWorkspace(m spec.TerraformModule) error {
	how := `tags = ["vms"]`
	if m.Backend != "cloud" {
		how = `prefix = "vms-"`
	}
	return &providers.Problem{
		Outcome: providers.Failed, Code: "terraform_backend",
		Next: providers.Say("let the block find workspaces in place of the name: workspaces { " + how + " }"),
		Err:  fmt.Errorf("provider.terraform.%s: the %s block of the module %s names one workspace, and each VM needs one of its own", p.settings.Name, m.Backend, p.module),
	}
}

// framed is an error of a command that speaks to people, in one line.
type framed struct {
	text string
	err  error
}

func (f *framed) Error() string { return f.text }
func (f *framed) Unwrap() error { return f.err }

// inWords returns an error of Terraform without its frame. A Problem stays as it is.
func inWords(err error) error {
	var problem *providers.Problem
	if err == nil || errors.As(err, &problem) {
		return err
	}
	return &framed{unframed(err.Error()), err}
}

// unframed returns a text for people in one line, without its frame.
func unframed(text string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(text)), " ")
}
