package executor

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// provisions returns what a record remembers of the scripts of a VM after its wanted values were applied:
// nothing in a new object, and nothing of a script that is not wanted any more.
func (x *execution) provisions(r state.Record, step planner.Step, c *planner.Change) map[string]state.Provision {
	if step.Phase == providers.PhaseMake {
		return nil
	}
	want := c.Change.Want
	if now := x.wants[step.ID]; step.Address == c.Address && now != cty.NilVal {
		want = now
	}
	kept := map[string]state.Provision{}
	for _, p := range c.Provisions {
		was, remembered := r.Provisions[p.Name]
		block := spec.Labelled(want, providers.ProvisionAttr, p.Name)
		switch {
		case remembered:
			kept[p.Name] = was
		case p.Assumed && block != cty.NilVal:
			kept[p.Name] = state.Provision{Digest: x.DigestKey.Provision(r.ID, p.Name, block), Starts: r.Starts}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// ran returns what a record remembers of the scripts of a VM after one of them ran to its end. digest is of the
// script that ran; "": the wanted one did.
func (x *execution) ran(r state.Record, step planner.Step, digest string) map[string]state.Provision {
	own := x.DigestKey.Provision(r.ID, step.Provision, spec.Labelled(x.wants[step.ID], providers.ProvisionAttr, step.Provision))
	return withProvision(r.Provisions, step.Provision, func(p *state.Provision) {
		*p = state.Provision{Digest: cmp.Or(digest, own), Starts: r.Starts}
	})
}

// withProvision returns a copy of what is remembered of scripts, in which set has changed one.
func withProvision(all map[string]state.Provision, name string, set func(*state.Provision)) map[string]state.Provision {
	all = maps.Clone(all)
	if all == nil {
		all = map[string]state.Provision{}
	}
	p := all[name]
	set(&p)
	all[name] = p
	return all
}

// failedWith says in a few words, for the next plan, why a script did not succeed.
func failedWith(step planner.Step, f *providers.Problem) string {
	if f.Code == "interrupted" {
		return "it was interrupted"
	}
	return providers.Cut(strings.TrimPrefix(f.Error(), fmt.Sprintf("%s of %s: ", step.Op, step.Address)))
}

// isUnchanged reports whether a step runs a script again only if a value changed, and that value turned
// out to be the old one.
func (x *execution) isUnchanged(step planner.Step, w providers.Work) bool {
	if step.Provision == "" {
		return false
	}
	r := x.records[step.Address]
	for _, p := range x.Plan.Changes[step.Change].Provisions {
		if p.Name == step.Provision && p.IfChanged {
			same, _ := x.DigestKey.Provisioned(r.Provisions[p.Name].Digest, r.ID, p.Name, spec.Labelled(w.Want, providers.ProvisionAttr, p.Name))
			return same
		}
	}
	return false
}
