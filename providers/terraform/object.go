package terraform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// seen is a workspace as it was read.
type seen struct {
	workspace

	state *stateFile
	raw   []byte   // the state as it was read
	own   []string // the addresses of the resources that belong to its VM alone
}

// stateName is the name of a file with a state.
const stateName = "terraform.tfstate"

// dataPath returns the folder in which Terraform keeps the providers and the backend of a workspace.
func (p *Provider) dataPath(name string) string { return filepath.Join(p.settings.Dir, "data", name) }

// find returns the workspace of an object. nil: there is none.
func find(ctx context.Context, where states, id providers.ID) (*workspace, error) {
	if local, is := where.(localStates); is {
		return local.p.folderOf(id)
	}
	all, err := where.list(ctx)
	return workspaceOf(all, id), err
}

// read reads the state of a workspace that exists. It writes nothing.
func (p *Provider) read(ctx context.Context, where states, w workspace) (*seen, error) {
	text, err := where.read(ctx, w.name)
	if err != nil {
		return nil, err
	}
	state, err := readState(text)
	if err != nil {
		return nil, p.unreadable(where, w, err)
	}
	return &seen{workspace: w, state: state, raw: text, own: state.managed(p.shared)}, nil
}

// unreadable describes the state of a workspace that cannot be read: on this machine Terraform rewrites it in its place, and a full
// disk leaves the beginning of it.
func (p *Provider) unreadable(where states, w workspace, err error) error {
	if _, local := where.(localStates); !local {
		return fmt.Errorf("read the state of the workspace %s: %w", w.name, err)
	}
	path := p.statePath(w.name)
	if _, absent := os.Stat(path + beforeSuffix); absent != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return fmt.Errorf("read %s: %w; if its disk was full, the state from before the last change is in %s, and what that change made is in neither", path, err, path+beforeSuffix)
}

// made reports whether the workspace has resources of its own: as far as Terraform knows, its VM exists.
func (s *seen) made() bool { return len(s.own) > 0 }

// computed returns the attributes that outputs tell.
func (s *seen) computed(outputs cty.Value) map[string]cty.Value {
	all := map[string]cty.Value{
		outID: cty.StringVal(string(s.id)), outAddress: cty.NullVal(cty.String), outSSHPort: cty.NullVal(cty.Number),
	}
	if !s.made() {
		return all
	}
	for name := range all {
		v := s.state.output(outputOf(outputs, name))
		switch {
		case !ctyread.Known(v):
		case name == outSSHPort && v.Type() == cty.Number, name != outSSHPort && v.Type() == cty.String:
			all[name] = v
		}
	}
	if ctyread.Known(all[outAddress]) && all[outSSHPort].IsNull() {
		all[outSSHPort] = cty.NumberIntVal(22)
	}
	return all
}

// text returns the text of the output that tells an attribute. "": there is none.
func (s *seen) text(outputs cty.Value, attribute string) string {
	v := s.state.output(outputOf(outputs, attribute))
	if !ctyread.Known(v) || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// object returns the workspace as the planner sees it. known is its resource; nil: none is known.
func (p *Provider) object(s *seen, known *providers.Known) providers.Object {
	outputs, on, state := cty.NilVal, s.made(), providers.StateOff
	if on {
		state = providers.StateRunning
	}
	o := providers.Object{
		Kind: spec.VM, ID: s.id, Name: s.name, Running: &on, State: state, Unreadable: map[string]string{},
		Fingerprint: p.fingerprint(s), Owner: p.mark(s.workspace, known),
	}
	if known != nil {
		o.Name = known.Name
		if outputs = ctyread.Attr(known.Prior, "outputs"); !ctyread.Known(outputs) {
			outputs = ctyread.Attr(known.Want, "outputs")
		}
	}
	o.Attrs = cty.ObjectVal(s.computed(outputs))
	if o.Owner != nil {
		o.Owner.HostKey = s.text(outputs, outHostKey)
	}
	o.Findings = p.findings(s, o)
	return o
}

func (p *Provider) findings(s *seen, o providers.Object) []providers.Finding {
	var all []providers.Finding
	var at spec.Address
	if o.Owner != nil {
		at = o.Owner.Address
	}
	if !s.made() {
		all = append(all, providers.Finding{
			Kind: providers.FindPartial, Address: at, Object: o.Name, Action: string(p.tool()) + " makes it whole",
			Evidence: []string{"the workspace " + s.name + " has no resources of its own"},
		})
	}
	for _, f := range p.lockFinding(s.name) {
		f.Address, f.Object = at, o.Name
		all = append(all, f)
	}
	if flawed := s.state.flawed(); len(flawed) > 0 {
		all = append(all, providers.Finding{
			Kind: providers.FindBroken, Address: at, Object: o.Name, Action: string(p.tool()) + " replaces what is tainted",
			Evidence: []string{"tainted in the workspace " + s.name + ": " + strings.Join(flawed, ", ")},
			Next:     p.untaint(s.name, flawed),
		})
	}
	if copies := s.state.copies(); len(copies) > 0 {
		f := providers.Finding{Kind: providers.FindBroken, Address: at, Object: o.Name, Action: string(p.tool()) + " destroys the old copy", Next: p.forgetOld(s.name, copies)}
		for _, c := range copies {
			f.Evidence = append(f.Evidence, "in the workspace "+s.name+" an old copy of "+c.address+" is left: it was replaced, and could not be destroyed")
		}
		all = append(all, f)
	}
	return all
}

// mark returns the owner mark: the name of the workspace, and the record, which alone follows a move.
func (p *Provider) mark(w workspace, known *providers.Known) *providers.Mark {
	m := &providers.Mark{ID: p.settings.Project.Lineage(), Project: p.settings.Project.Name, Of: w.id}
	if known != nil {
		m.Address = known.Address
		return m
	}
	address, ok := w.at()
	if !ok {
		return nil
	}
	m.Address = address
	return m
}

// fingerprint returns what a step relies on: the state of the workspace, as Terraform wrote it last.
func (p *Provider) fingerprint(s *seen) string {
	var print guard.Print
	print.Add("id", string(s.id))
	print.Add("lineage of the state", s.state.Lineage)
	print.Add("serial of the state", fmt.Sprint(s.state.Serial))
	return print.String()
}
