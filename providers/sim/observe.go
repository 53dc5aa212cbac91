package sim

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/spec"
)

// Observe reads every VM of the host, and looks for processes that none of them
// accounts for.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{Partial: map[spec.Kind]string{}, Host: map[string]string{"folder": p.settings.Dir}}
	names, err := p.named(vmsDir, vmSuffix)
	why, faultErr := p.blindHost(ctx)
	switch {
	case faultErr != nil:
		return inv, faultErr
	case err != nil:
		inv.Partial[spec.VM] = err.Error()
		return inv, nil
	case why != "":
		inv.Partial[spec.VM] = why
		return inv, nil
	}
	inv.Host["vms"] = strconv.Itoa(len(names))
	files := p.readAll(names)
	ghosts, err := p.weighAll(ctx, files)
	if err != nil {
		inv.Partial[spec.VM] = err.Error()
	}
	k := knownOf(q)
	for _, r := range append(files, ghosts...) {
		if err := p.report(ctx, &inv, k, r); err != nil {
			return inv, err
		}
	}
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int { return strings.Compare(a.Name, b.Name) })
	return inv, ctx.Err()
}

// reading is what came of one VM.
type reading struct {
	name string
	sight
	err error
}

// readAll reads the files of VMs, side by side.
func (p *Provider) readAll(names []string) []reading {
	all := make([]reading, len(names))
	var wait sync.WaitGroup
	workers := min(runtime.NumCPU(), len(names))
	for w := range workers {
		wait.Go(func() {
			for i := w; i < len(names); i += workers {
				all[i].name = names[i]
				all[i].vmFile, all[i].err = p.readVM(names[i])
			}
		})
	}
	wait.Wait()
	// What was deleted meanwhile is not there.
	return slices.DeleteFunc(all, func(r reading) bool { return errors.Is(r.err, fs.ErrNotExist) })
}

// weighAll says what runs each VM, and returns those of which only processes are
// left. An error says that there may be more.
func (p *Provider) weighAll(ctx context.Context, all []reading) ([]reading, error) {
	heavy := !p.weightless
	var named []process.Identity
	for _, r := range all {
		if r.err != nil || r.Weightless {
			continue
		}
		heavy = true
		if run, err := p.readRun(r.vmFile); err == nil && run != nil {
			named = append(named, *run.Process)
		}
	}
	var s strays
	if heavy {
		s = p.findStrays(ctx, named)
	}
	read := map[string]bool{}
	for i := range all {
		read[all[i].name] = true
		if all[i].err == nil {
			all[i].sight = p.weigh(all[i].vmFile, s)
		}
	}
	ghosts, err := p.ghosts(s, read)
	return ghosts, errors.Join(s.err, err)
}

// ghosts are the VMs of which only processes or a disk are left.
func (p *Provider) ghosts(s strays, read map[string]bool) ([]reading, error) {
	names, err := p.named(disksDir, rootSuffix)
	names = slices.AppendSeq(names, maps.Keys(s.of))
	slices.Sort(names)
	var all []reading
	for _, name := range slices.Compact(names) {
		if read[name] {
			continue
		}
		r := reading{name: name}
		if r.sight, r.err = p.ghost(name, s); !errors.Is(r.err, fs.ErrNotExist) {
			all = append(all, r)
		}
	}
	return all, err
}

// knowns finds what is known of a VM.
type knowns struct {
	byID      map[providers.ID]providers.Known
	byAddress map[spec.Address]providers.Known
	byName    map[string]providers.Known
}

func knownOf(q providers.Query) knowns {
	k := knowns{
		byID: map[providers.ID]providers.Known{}, byAddress: map[spec.Address]providers.Known{}, byName: map[string]providers.Known{},
	}
	for _, one := range q.Known {
		k.byName[one.Name], k.byAddress[one.Address] = one, one
		if one.ID != "" {
			k.byID[one.ID] = one
		}
	}
	return k
}

func (k knowns) of(f vmFile, lineage string) providers.Known {
	if one, ok := k.byID[f.ID]; ok {
		return one
	}
	if f.Owner != nil && f.Owner.ID == lineage {
		return k.byAddress[f.Owner.Address]
	}
	return k.byName[f.Name]
}

// report puts one VM into the inventory.
func (p *Provider) report(ctx context.Context, inv *providers.Inventory, k knowns, r reading) error {
	if r.err != nil {
		inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: spec.VM, Name: r.name, Reason: r.err.Error()})
		return nil
	}
	if r.Owner != nil {
		why, err := p.blind(ctx, r.Owner.Address)
		if err != nil {
			return err
		}
		if why != "" {
			inv.Unknown = append(inv.Unknown, providers.Unknown{Kind: spec.VM, ID: r.ID, Name: r.name, Reason: why})
			return nil
		}
	}
	want := k.of(r.vmFile, p.settings.Project.Lineage()).Want
	if want == (cty.Value{}) {
		want = cty.NilVal
	}
	inv.Objects = append(inv.Objects, r.object(want))
	if r.lock.verdict == lockHeld {
		inv.Objects = append(inv.Objects, r.lock.object(r.name))
	}
	return nil
}
