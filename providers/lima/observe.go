package lima

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/spec"
)

// askedTogether limits the monitors that are asked side by side.
const askedTogether = 32

// Observe reads every instance and disk of the home, and looks for processes that none of them
// accounts for. It writes nothing.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{
		Partial: map[spec.Kind]*providers.Problem{}, Missing: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{},
		Host: p.hostFacts(), Capacity: providers.Capacity{CPUs: p.cpus, Memory: p.memory},
	}
	for kind := range neededBy {
		if lacking := p.lacking(kind); lacking != nil {
			inv.Missing[kind] = lacking
		}
	}
	if overridden := p.overridden(); overridden != nil && inv.Missing[spec.VM] == nil {
		inv.Missing[spec.VM] = overridden
	}
	v := view{Provider: p, inv: &inv, query: q, found: p.find(ctx)}
	if v.found.err != nil {
		inv.Partial[spec.VM] = providers.Unread(v.found.err)
	}
	v.readInstances(ctx)
	v.readDisks()
	v.report()
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return inv, ctx.Err()
}

// view collects the observations of one Observe into an inventory.
type view struct {
	*Provider
	inv       *providers.Inventory
	query     providers.Query
	found     found
	instances map[string]*instance
	unread    map[string]error // of instances
	disks     map[string]*observedDisk
}

// readInstances reads all instances of the home, side by side: also those of which only processes are
// left.
func (v *view) readInstances(ctx context.Context) {
	v.instances, v.unread = map[string]*instance{}, map[string]error{}
	names, err := v.names(v.home)
	if err != nil {
		v.inv.Partial[spec.VM] = providers.Unread(err)
	}
	names = slices.AppendSeq(names, maps.Keys(v.found.of))
	registered, err := v.registeredAlone(v.found.wsl)
	if err != nil {
		v.inv.Partial[spec.VM] = providers.Unread(err)
	}
	names = slices.AppendSeq(names, maps.Keys(registered))
	slices.Sort(names)
	names = slices.Compact(names)
	v.inv.Host["instances"] = strconv.Itoa(len(names))
	read := make([]*instance, len(names))
	errs := make([]error, len(names))
	parallel.Do(askedTogether, len(names), func(i int) {
		errs[i] = providers.Contain(func() (err error) {
			read[i], err = v.readInstance(ctx, names[i], v.found)
			return err
		})
	})
	for i, name := range names {
		switch {
		case errors.Is(errs[i], fs.ErrNotExist): // deleted meanwhile
		case errs[i] != nil:
			v.unread[name] = errs[i]
			v.instances[name] = read[i]
		default:
			v.instances[name] = read[i]
		}
	}
}

// stateOf returns the run state of an instance that was read.
func (v *view) stateOf(name string) (state string, there bool) {
	s := v.instances[name]
	if s == nil {
		return stateUnknown, v.unread[name] != nil
	}
	if v.unread[name] != nil {
		return stateUnknown, true
	}
	return s.state, true
}

func (v *view) readDisks() {
	v.disks = map[string]*observedDisk{}
	names, err := v.names(filepath.Join(v.home, disksDir))
	if err != nil {
		v.inv.Partial[spec.Disk] = providers.Unread(err)
		return
	}
	for _, name := range names {
		d, err := v.readDisk(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			id := unmarkedID(spec.Disk, name)
			if d != nil {
				id = d.id
			}
			v.inv.Unknown = append(v.inv.Unknown, providers.Unknown{Kind: spec.Disk, ID: id, Name: name, Reason: err.Error()})
		default:
			d.lock = v.lockOf(name, v.stateOf)
			v.disks[name] = d
		}
	}
	ids := map[string]providers.ID{}
	for name, d := range v.disks {
		ids[name] = d.id
	}
	v.diskIDs.Store(&ids)
}

// report puts what was read into the inventory.
func (v *view) report() {
	for _, name := range slices.Sorted(maps.Keys(v.disks)) {
		d := v.disks[name]
		v.inv.Objects = append(v.inv.Objects, d.described(v.diskPath(name, dataDisk)).Object())
		if d.lock.verdict == lockHeld || d.lock.verdict == lockStale {
			v.inv.Objects = append(v.inv.Objects, d.lock.object(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.instances)) {
		s := v.instances[name]
		if s == nil || v.unread[name] != nil || v.isLeftover(s) {
			continue
		}
		v.inv.Objects = append(v.inv.Objects, v.described(s, v.disks, v.labelOf).Object())
	}
	for _, name := range slices.Sorted(maps.Keys(v.unread)) {
		id := unmarkedID(spec.VM, name)
		if s := v.instances[name]; s != nil {
			id = s.id
		}
		v.inv.Unknown = append(v.inv.Unknown, providers.Unknown{Kind: spec.VM, ID: id, Name: name, Reason: v.unread[name].Error()})
	}
	v.inv.FindImports(v.query)
}

// isLeftover reports whether a folder is no instance: it has no definition, no mark, no disk, and no
// process. Lima does not list it either.
func (p *Provider) isLeftover(s *instance) bool {
	return s.doc == nil && s.mark == nil && s.copied == nil && s.root == 0 && s.wsl == nil && s.state == providers.StateOff
}

// labelOf returns the planner's name of a disk: its present address, or its own name.
func (v *view) labelOf(d *observedDisk) string {
	for _, one := range v.query.Known {
		if one.Kind == spec.Disk && (one.ID == d.id || one.Import != "" && d.mark == nil && string(one.Import) == d.name) {
			return one.Address.String()
		}
	}
	if d.mark != nil && d.mark.Owner != nil && d.mark.Owner.ID == v.settings.Project.Lineage() {
		return d.mark.Owner.Address.String()
	}
	return d.name
}
