package cli

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"vmctl/internal/ctyread"
	"vmctl/spec"
	"vmctl/state"
)

// recorded lists the addresses of the state, sorted.
func recorded(s *state.Snapshot) []spec.Address {
	return slices.SortedFunc(maps.Keys(s.Records), spec.Address.Compare)
}

// known lists the addresses of the spec and the state, sorted.
func known(p *project, s *state.Snapshot) []spec.Address {
	all := recorded(s)
	for _, r := range p.config.Resources {
		if _, ok := s.Records[r.Address]; !ok {
			all = append(all, r.Address)
		}
	}
	slices.SortFunc(all, spec.Address.Compare)
	return all
}

// values returns the recorded values of every address, for references and outputs.
func values(s *state.Snapshot) map[spec.Address]cty.Value {
	all := map[spec.Address]cty.Value{}
	for addr, r := range s.Records {
		all[addr] = r.Values
	}
	return all
}

// addRecorded adds the resources that only records name to a spec that has mistakes. It
// leaves out a resource whose provider leads to another system by now.
func (a *app) addRecorded(p *project, s *state.Snapshot) {
	if p.flawed != nil {
		a.addAllRecorded(p, s)
	}
}

// addAllRecorded adds them whether the spec has mistakes or not: a block may be gone while
// its object exists.
func (a *app) addAllRecorded(p *project, s *state.Snapshot) {
	var resources []spec.Resource
	var providers []spec.Provider
	systems := map[spec.ProviderRef]string{}
	for _, block := range p.config.Providers {
		systems[block.Ref] = a.system(block.Ref, block.Attrs)
	}
	for _, addr := range recorded(s) {
		r := s.Records[addr]
		if _, ok := p.config.Resource(addr); ok {
			continue
		}
		system := a.system(r.Provider, r.Settings)
		if _, ok := systems[r.Provider]; !ok {
			systems[r.Provider] = system
			providers = append(providers, spec.Provider{Ref: r.Provider, Attrs: r.Settings})
		}
		if systems[r.Provider] == system {
			resources = append(resources, resourceOf(addr, r))
		}
	}
	p.config = p.config.WithRecorded(resources, providers)
}

// resourceOf returns the resource that a record describes.
func resourceOf(addr spec.Address, r state.Record) spec.Resource {
	return spec.Resource{
		Address: addr, Provider: r.Provider, Inside: r.Inside, Uses: r.Uses,
		Want: shaped(r.Values, spec.WantType(addr.Kind)), Policy: shaped(r.Policy, spec.PolicyType(addr.Kind)),
	}
}

// shaped returns a recorded object with exactly the attributes of a type; missing ones are
// null, or empty lists.
func shaped(v cty.Value, t cty.Type) cty.Value {
	values := map[string]cty.Value{}
	for name, of := range t.AttributeTypes() {
		values[name] = cty.NullVal(of)
		if of.IsListType() {
			values[name] = cty.ListValEmpty(of.ElementType())
		}
		a := ctyread.KnownAttr(v, name)
		if a == cty.NilVal {
			continue
		}
		if converted, err := convert.Convert(a, of); err == nil {
			values[name] = converted
		}
	}
	return cty.ObjectVal(values)
}
