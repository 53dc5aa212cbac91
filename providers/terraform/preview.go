package terraform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// Preview implements providers.Previewer: Terraform plans, and writes nothing that anybody else reads. nil: values are only
// known during apply.
func (p *Provider) Preview(ctx context.Context, c providers.Change) (*providers.Preview, error) {
	var acts []providers.Act
	if c.Action == providers.Destroy || c.Action == providers.ReplaceIt {
		now, err := p.recalled(ctx, c.Object)
		if err != nil || now == nil {
			return nil, err
		}
		for _, address := range now.own {
			acts = append(acts, providers.Act{Text: "destroy " + address, Applies: providers.Replace})
		}
	}
	switch c.Action {
	case providers.Create, providers.Update, providers.Import, providers.ReplaceIt:
	case providers.Start, providers.Recover:
		if !machine.Found(c.Object, providers.FindPartial) {
			return nil, nil
		}
	case providers.Destroy:
		return &providers.Preview{Acts: acts}, nil
	case providers.Stop, providers.RestartIt, providers.Forget, providers.Adopt, providers.Release, providers.NoOp:
		return nil, nil
	default:
		panic("unknown action " + string(c.Action))
	}
	for _, name := range []string{"variables", "variables_json"} {
		if v := ctyread.Attr(c.Want, name); v != cty.NilVal && !v.IsWhollyKnown() {
			return nil, nil
		}
	}
	object := c.Object
	if c.Action == providers.ReplaceIt {
		object = nil
	}
	module, err := p.readModule()
	if err != nil {
		return nil, guard.AsFailure(err, p.Failure, "read the module of "+c.Address.String())
	}
	made, err := p.planned(ctx, object, c.Want)
	if err != nil {
		return nil, guard.AsFailure(err, p.Failure, "ask "+string(p.tool())+" what it would do for "+c.Address.String())
	}
	if module, err = p.settled(module); err != nil {
		return nil, guard.AsFailure(err, p.Failure, "read the module of "+c.Address.String())
	}
	return &providers.Preview{Acts: append(acts, made.acts()...), Basis: module.Digest, Reads: module.Files}, nil
}

// recalled returns the workspace of an object, as it was observed last where reading it again costs a process. nil: there is none.
func (p *Provider) recalled(ctx context.Context, o *providers.Object) (*seen, error) {
	module, err := p.readModule()
	if err != nil || o == nil {
		return nil, err
	}
	where := p.recall(module)
	w, err := find(ctx, where, o.ID)
	if err != nil || w == nil {
		return nil, err
	}
	return p.read(ctx, where, *w)
}

// newWorkspace is the name of the data folder for plans of VMs that are not made yet.
const newWorkspace = "new"

// planned plans for the workspace of an object, without a lock: an apply elsewhere goes on. For a VM that is not made yet, or that
// lacks shared resources, it plans on a state of its own: Terraform would create a workspace that it is asked about.
func (p *Provider) planned(ctx context.Context, o *providers.Object, want cty.Value) (made *preview, err error) {
	module, err := p.readModule()
	if err != nil {
		return nil, err
	}
	now, err := p.recalled(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := p.checkErrored(module, now); err != nil {
		return nil, err
	}
	name, text := "", []byte(nil)
	if now != nil {
		name, text = now.name, now.raw
	}
	add, err := p.joiningOf(ctx, p.recall(module), name, text)
	if err != nil {
		return nil, err
	}
	var s *session
	state := ""
	if now != nil && add.none() {
		s, err = p.session(ctx, module, name)
		state = p.state(module, name)
	} else if s, err = p.openAside(ctx, module); err == nil {
		state = filepath.Join(s.dir, "new.tfstate")
	}
	if s != nil {
		defer func() { err = errors.Join(err, s.close()) }()
	}
	if err != nil {
		return nil, err
	}
	s.variables = variablesText(want)
	if !add.none() {
		into := target{option: state, lineage: newWorkspace, text: text, write: func(text []byte) error { return os.WriteFile(state, text, 0o600) }}
		if err := p.joinCopy(ctx, s, add, into); err != nil {
			return nil, err
		}
	}
	if made, err = s.plan(ctx, state, "-lock=false"); err != nil {
		return nil, err
	}
	return made, p.spareShared(made)
}

// openAside opens a session for plans on a state of its own. Its folder shows a module with a backend elsewhere as one with a
// local backend: a plan with the other one would create a workspace.
func (p *Provider) openAside(ctx context.Context, m spec.TerraformModule) (s *session, err error) {
	if s, err = p.openSession(ctx, p.module, p.dataPath(newWorkspace)); err != nil {
		return nil, err
	}
	if isRemote(m) {
		s.give()
		s.tf = nil
		if s.module, err = overlay(s.dir, p.module); err == nil {
			err = s.take()
		}
	}
	if err == nil {
		err = p.prepare(ctx, s, m, setup{dir: p.dataPath(newWorkspace)})
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// joinCopy gives shared resources to a copy of a state.
func (p *Provider) joinCopy(ctx context.Context, s *session, add joining, into target) error {
	if len(into.text) > 0 && len(add.copies) == 0 {
		if err := into.write(into.text); err != nil {
			return err
		}
	}
	return p.join(ctx, s, add, into)
}

// preview holds the changes that Terraform would make.
type preview struct {
	changes []resourceChange
	outputs []string // that would get another value, or go; sorted
}

// isEmpty reports whether Terraform would change nothing, its state neither.
func (p *preview) isEmpty() bool { return len(p.changes) == 0 && len(p.outputs) == 0 }

// acts returns the changes for a plan.
func (p *preview) acts() []providers.Act {
	var all []providers.Act
	for _, c := range p.changes {
		all = append(all, providers.Act{Text: c.String(), Applies: c.applies})
	}
	if len(p.changes) == 0 { // else they follow from what changes
		for _, name := range p.outputs {
			all = append(all, providers.Act{Text: "update output " + name, Applies: providers.Live})
		}
	}
	return all
}

// foreseen holds the acts that a plan showed, and the digest of the configuration that it was made of.
type foreseen struct {
	Acts  []providers.Act
	Setup string // the Setup of the module; "": it could not be read
}

// Words implements providers.Args.
func (f foreseen) Words() [][2]string {
	var all [][2]string
	for _, act := range f.Acts {
		all = append(all, [2]string{TypeName, act.Text})
	}
	return all
}

// unforeseen lists the changes that destroy a resource and were not shown.
func (p *preview) unforeseen(shown foreseen) []string {
	var all []string
	for _, act := range p.acts() {
		if act.Applies == providers.Replace && !slices.Contains(shown.Acts, act) {
			all = append(all, act.Text)
		}
	}
	return all
}

// resourceChange describes the change that Terraform would make to one resource.
type resourceChange struct {
	located

	shared  bool   // it belongs to all VMs of the module
	action  string // in words: create, update, replace, destroy
	applies providers.Applies
	reason  string
}

// String returns the change in words.
func (c resourceChange) String() string {
	text := c.action + " " + c.address
	if c.shared {
		text = c.action + " the shared " + c.address
	}
	if c.reason == "" {
		return text
	}
	return fmt.Sprintf("%s (%s)", text, c.reason)
}

// previewOf reads a plan of Terraform.
func previewOf(plan *tfjson.Plan, reasons map[string]string) *preview {
	var p preview
	for _, r := range plan.ResourceChanges {
		base := strings.TrimPrefix(r.ModuleAddress+"."+r.Type+"."+r.Name, ".")
		c := resourceChange{located: located{address: r.Address, base: base}, reason: strings.ReplaceAll(reasons[r.Address], "_", " ")}
		switch a := r.Change.Actions; {
		case a.Replace():
			c.action, c.applies = "replace", providers.Replace
		case a.Create():
			c.action, c.applies = "create", providers.Live
		case a.Delete():
			c.action, c.applies = "destroy", providers.Replace
			if r.DeposedKey != "" {
				c.action = "destroy the old copy of"
			}
		case a.Update():
			c.action, c.applies = "update", providers.Live
		default:
			continue
		}
		p.changes = append(p.changes, c)
	}
	for name, o := range plan.OutputChanges {
		if !o.Actions.NoOp() {
			p.outputs = append(p.outputs, name)
		}
	}
	slices.Sort(p.outputs)
	return &p
}
