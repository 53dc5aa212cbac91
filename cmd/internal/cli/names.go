package cli

import (
	"fmt"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/spec"
	"vmctl/state"
)

// vmsOf finds the VMs that names mean, each once, sorted.
func vmsOf(p *project, names []string) ([]spec.Address, error) {
	return ofKind(p, spec.VM, names)
}

// ofKind finds the resources of a kind that names mean, each once, sorted.
func ofKind(p *project, kind spec.Kind, names []string) ([]spec.Address, error) {
	var all []spec.Address
	for _, name := range names {
		found, err := p.config.Lookup(name, kind)
		if err != nil {
			if others, none := p.config.Lookup(name); none == nil {
				return nil, rejected("usage", others[0].String()+" is no "+kindWord(kind))
			}
			return nil, rejected("unknown_resource", err.Error())
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, spec.Address.Compare)
	return slices.Compact(all), nil
}

// kindWord returns the word for a resource of a kind.
func kindWord(kind spec.Kind) string {
	if kind == spec.VM {
		return "VM"
	}
	return string(kind)
}

// vmOf finds the one VM that a name means.
func vmOf(p *project, name string) (spec.Address, error) { return oneOfKind(p, spec.VM, name) }

// oneOfKind finds the one resource of a kind that a name means.
func oneOfKind(p *project, kind spec.Kind, name string) (spec.Address, error) {
	all, err := ofKind(p, kind, []string{name})
	if err != nil {
		return spec.Address{}, err
	}
	if len(all) != 1 {
		return spec.Address{}, severalError(name, all)
	}
	return all[0], nil
}

// severalError returns the error for a name that means several resources where one is needed.
func severalError(name string, all []spec.Address) error {
	return rejected("usage", fmt.Sprintf("%q names %d resources, and one is needed", name, len(all)),
		"they are "+strings.Join(view.Addresses(all), ", "))
}

// addresses finds the resources of the spec and the state that texts name.
func addresses(p *project, s *state.Snapshot, texts []string) ([]spec.Address, error) {
	var all []spec.Address
	for _, text := range texts {
		found, err := lookup(p, s, text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func addressSet(p *project, s *state.Snapshot, texts []string) (map[spec.Address]bool, error) {
	all, err := addresses(p, s, texts)
	set := map[spec.Address]bool{}
	for _, addr := range all {
		set[addr] = true
	}
	return set, err
}

// anyAddressSet finds the resources that texts name, also those that neither the spec nor the state has: orphans.
func anyAddressSet(p *project, s *state.Snapshot, texts []string) (map[spec.Address]bool, error) {
	set := map[spec.Address]bool{}
	for _, text := range texts {
		found, err := lookup(p, s, text)
		if addr, wrong := spec.ParseAddress(text); err != nil && wrong == nil {
			found, err = []spec.Address{addr}, nil
		}
		if err != nil {
			return nil, err
		}
		for _, addr := range found {
			set[addr] = true
		}
	}
	return set, nil
}

// lookup finds a resource, or every instance of a block, by its exact name.
func lookup(p *project, s *state.Snapshot, text string) ([]spec.Address, error) {
	found, err := p.config.Lookup(text)
	if err == nil {
		return found, nil
	}
	for _, addr := range recorded(s) {
		if addr.String() == text || addr.Block().String() == text {
			found = append(found, addr)
		}
	}
	if len(found) == 0 {
		return nil, rejected("unknown_resource", err.Error())
	}
	return found, nil
}
