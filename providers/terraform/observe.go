package terraform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/parallel"
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
	module, unread := p.readModule() // observeHost tells why not
	var where states = localStates{p}
	if unread == nil {
		where = p.statesOf(module)
	}
	all, err := where.list(ctx)
	if slices.ContainsFunc(all, func(w workspace) bool { return unread != nil && p.hasPlace(w) }) {
		err = unread
	}
	lost := map[providers.ID]error{}
	if err == nil && unread == nil && isRemote(module) {
		lost, err = p.lost(ctx, module, all)
	}
	if err != nil {
		inv.Partial[spec.VM] = providers.Unread(fmt.Errorf("list the workspaces of %s: %w", p.module, err))
		return inv, ctx.Err()
	}
	recalled, forgotten := recalledStates{states: where, texts: map[string][]byte{}}, []missing(nil)
	for i, now := range p.observeAll(ctx, where, module, all) {
		if now.err != nil {
			lost[all[i].id] = now.err
			continue
		}
		recalled.all, recalled.texts[all[i].name] = append(recalled.all, all[i]), now.seen.raw
		known := knownOf(q, all[i])
		if p.isForgotten(now.seen, known) {
			forgotten = append(forgotten, missing{*known, now.seen})
			continue
		}
		o := p.object(now.seen, known)
		if known != nil && known.Want != cty.NilVal && unread == nil && now.seen.made() {
			if due := p.moduleDue(now.seen, module); due != nil {
				o.Due = append(o.Due, *due)
			}
		}
		inv.Objects = append(inv.Objects, o)
	}
	folders, err := p.folders()
	if err != nil {
		return inv, err
	}
	for _, w := range append(all, folders...) {
		if err, is := lost[w.id]; is {
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: spec.VM, ID: w.id, Name: nameOf(w, knownOf(q, w)), Reason: err.Error()})
			delete(lost, w.id)
		}
	}
	if unread == nil {
		p.keep(recalled)
		forgotten = append(forgotten, absent(q, all, inv)...)
		inv.Unknown = append(inv.Unknown, p.unaccounted(ctx, module, forgotten)...)
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int { return cmp.Compare(a.Name, b.Name) })
	inv.FindImports(q)
	return inv, ctx.Err()
}

// observed is a workspace, or why it is not known.
type observed struct {
	seen *seen
	err  error
}

// observeAll reads workspaces, several at once: each may cost a process.
func (p *Provider) observeAll(ctx context.Context, where states, m spec.TerraformModule, all []workspace) []observed {
	found := make([]observed, len(all))
	parallel.Do(runtime.GOMAXPROCS(0), len(all), func(i int) {
		found[i].seen, found[i].err = p.observeOne(ctx, where, m, all[i])
	})
	return found
}

func (p *Provider) observeOne(ctx context.Context, where states, m spec.TerraformModule, w workspace) (*seen, error) {
	left, err := p.leftRunning(ctx, w.name)
	if err != nil {
		return nil, err
	}
	if left != nil {
		return nil, errors.New(left.said(ctx, p.recordPath(w.name)))
	}
	if _, local := where.(localStates); local {
		if err := p.elsewhere(m, w); err != nil {
			return nil, err
		}
	}
	return p.read(ctx, where, w)
}

// lost returns why the state of a workspace with a folder on this machine is not in the backend of the module, for those that
// are not listed and were not removed by anybody.
func (p *Provider) lost(ctx context.Context, m spec.TerraformModule, listed []workspace) (map[providers.ID]error, error) {
	all := map[providers.ID]error{}
	folders, err := p.folders()
	for _, w := range folders {
		if workspaceOf(listed, w.id) != nil {
			continue
		}
		left, err := p.leftRunning(ctx, w.name)
		switch {
		case err != nil:
		case left != nil:
			err = errors.New(left.said(ctx, p.recordPath(w.name)))
		default:
			err = p.elsewhere(m, w)
		}
		if err != nil {
			all[w.id] = err
		}
	}
	return all, err
}

// nameOf returns the name of the object of a workspace. known may be nil.
func nameOf(w workspace, known *providers.Known) string {
	if known == nil {
		return w.name
	}
	return known.Name
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
