package terraform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/terraform-exec/tfexec"

	"vmctl/providers"
	"vmctl/spec"
)

// Observe implements providers.Provider. It reads the states of the workspaces, and writes nothing: Terraform itself
// would create a workspace that it is asked to read.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{
		Partial: map[spec.Kind]*providers.Problem{}, Missing: map[spec.Kind]*providers.Problem{},
		Found: map[spec.Address]providers.ID{}, Host: map[string]string{},
	}
	all, err := p.list()
	if err != nil {
		inv.Partial[spec.VM] = providers.Unread(fmt.Errorf("list the workspaces of %s: %w", p.module, err))
		return inv, ctx.Err()
	}
	for _, w := range all {
		known := knownOf(q, w)
		var s *seen
		left, err := p.leftRunning(ctx, w.name)
		if err == nil && left == nil {
			s, err = p.read(w)
		}
		if left != nil {
			err = errors.New(left.said(ctx, p.recordPath(w.name)))
		}
		if err != nil {
			name := w.name
			if known != nil {
				name = known.Name
			}
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: spec.VM, ID: w.id, Name: name, Reason: err.Error()})
			continue
		}
		inv.Objects = append(inv.Objects, p.object(s, known))
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int { return cmp.Compare(a.Name, b.Name) })
	inv.FindImports(q)
	p.observeHost(ctx, &inv)
	return inv, ctx.Err()
}

// knownOf returns the resource of a workspace: by its record, or else by the address in its name.
func knownOf(q providers.Query, w workspace) *providers.Known {
	for _, k := range q.Known {
		if k.Kind == spec.VM && k.ID == w.id {
			return &k
		}
	}
	for _, k := range q.Known {
		if k.Kind == spec.VM && k.ID == "" && encode(addressText(k.Address)) == w.address {
			return &k
		}
	}
	return nil
}

// The oldest versions that have everything that a step uses.
const (
	oldestTerraform = "1.5.0"
	oldestTofu      = "1.6.0"
)

// observeHost says what this machine lacks to run the module.
func (p *Provider) observeHost(ctx context.Context, inv *providers.Inventory) {
	if _, err := p.readModule(); err != nil {
		inv.Missing[spec.VM] = providers.Unread(err)
		return
	}
	tool, found, err := p.version(ctx)
	if err != nil {
		inv.Missing[spec.VM] = providers.Unread(err)
		return
	}
	inv.Host[tool] = found.String()
	if oldest := oldestOf(tool); found.LessThan(version.Must(version.NewVersion(oldest))) {
		inv.Missing[spec.VM] = &providers.Problem{
			Outcome: providers.Failed, Code: "terraform_old",
			Err:  fmt.Errorf("%s %s is too old for provider.terraform.%s: it takes %s or newer", tool, found, p.settings.Name, oldest),
			Next: providers.Say("install a newer one, or name another program as binary in the provider block"),
		}
	}
}

// readModule reads the module, and refuses one whose states vmctl could not tell apart.
func (p *Provider) readModule() (spec.TerraformModule, error) {
	m, err := spec.ReadTerraformModule(p.module)
	if err == nil && m.Backend != "" && m.Backend != "local" {
		err = &providers.Problem{
			Outcome: providers.Failed, Code: "terraform_backend",
			Next: providers.Say("use a module without a backend block, or with backend \"local\" {}: vmctl keeps its states in the data directory"),
			Err:  fmt.Errorf("provider.terraform.%s: the module %s has the backend %s, which is not built in yet", p.settings.Name, p.module, m.Backend),
		}
	}
	return m, err
}

func oldestOf(tool string) string {
	if tool == "OpenTofu" {
		return oldestTofu
	}
	return oldestTerraform
}

// version asks the program for its name and its version.
func (p *Provider) version(ctx context.Context) (tool string, v *version.Version, err error) {
	s, err := p.openSession(ctx, "", "")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	tool = "Terraform"
	err = s.run(false, func(tf *tfexec.Terraform) (err error) {
		v, _, err = tf.Version(ctx, true)
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("ask %s for its version: %w", p.binary, err)
	}
	return tool, v, nil
}
