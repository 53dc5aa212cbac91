package terraform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

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
	p.observeHost(ctx, &inv)
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
