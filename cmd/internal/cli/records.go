package cli

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

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

// values is what the state knows of every address, for references and outputs.
func values(s *state.Snapshot) map[spec.Address]cty.Value {
	all := map[spec.Address]cty.Value{}
	for addr, r := range s.Records {
		all[addr] = r.Values
	}
	return all
}
