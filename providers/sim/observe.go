package sim

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"vmctl/internal/ctyread"
	"vmctl/internal/parallel"
	"vmctl/providers"
	"vmctl/spec"
)

// Observe reads every VM and disk of the host, and looks for processes that none
// of them accounts for.
func (p *Provider) Observe(ctx context.Context, q providers.Query) (providers.Inventory, error) {
	inv := providers.Inventory{
		Partial: map[spec.Kind]*providers.Problem{}, Found: map[spec.Address]providers.ID{}, Host: map[string]string{"folder": p.dir},
		Subnets:  p.subnets(),
		Capacity: providers.Capacity{CPUs: ctyread.Uint(p.settings.Attrs, "cpus"), Memory: ctyread.Uint(p.settings.Attrs, "memory")},
	}
	names, err := p.named(vmsDir, vmSuffix)
	if err != nil {
		unread := providers.Unread(err)
		inv.Partial[spec.VM], inv.Partial[spec.Disk], inv.Partial[spec.Network] = unread, unread, unread
		return inv, nil
	}
	inv.Host["vms"] = strconv.Itoa(len(names))
	v := viewer{Provider: p, inv: &inv, known: knownOf(q), disks: map[string]observedDisk{}, networks: map[providers.ID]networkFile{}}
	files := p.readAll(names)
	unlisted, found, err := p.findProcesses(ctx, files)
	if err != nil {
		inv.Partial[spec.VM] = providers.Unread(err)
	}
	v.reportDisks(found)
	v.reportNetworks()
	for _, r := range append(files, unlisted...) {
		v.report(r)
	}
	v.hideAddresses()
	v.find()
	slices.SortFunc(inv.Objects, func(a, b providers.Object) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(inv.Unknown, func(a, b providers.Unknown) int {
		return cmp.Or(strings.Compare(string(a.Kind), string(b.Kind)), strings.Compare(a.Name, b.Name))
	})
	return inv, ctx.Err()
}

// reading holds one VM as it was read, or the error of reading it.
type reading struct {
	name string
	observedVM
	err error
}

// readAll reads the files of VMs, side by side.
func (p *Provider) readAll(names []string) []reading {
	all := make([]reading, len(names))
	parallel.Do(runtime.NumCPU(), len(names), func(i int) {
		all[i].name = names[i]
		all[i].err = providers.Contain(func() (err error) {
			all[i].vmFile, err = p.readVM(names[i])
			return err
		})
	})
	// A VM that was deleted meanwhile does not exist.
	return slices.DeleteFunc(all, func(r reading) bool { return errors.Is(r.err, fs.ErrNotExist) })
}

// askedTogether limits the host agents that are asked side by side.
const askedTogether = 32

// findProcesses finds the processes of each VM. It returns the VMs, also those of which only
// processes or a root disk are left, and all processes and locks. After an error there may be
// more.
func (p *Provider) findProcesses(ctx context.Context, all []reading) ([]reading, foundProcesses, error) {
	s := p.findAll(ctx, all)
	read := map[string]bool{}
	for _, r := range all {
		read[r.name] = true
	}
	parallel.Do(askedTogether, len(all), func(i int) {
		if all[i].err == nil {
			all[i].err = providers.Contain(func() error {
				all[i].observedVM = p.runnerOf(all[i].vmFile).observe(ctx, all[i].vmFile, s)
				all[i].digest = p.settings.Digest
				return nil
			})
		}
	})
	unlisted, err := p.unlisted(s, read)
	return unlisted, s, errors.Join(s.err, err)
}

// unlisted returns the VMs of which only processes or a root disk are left.
func (p *Provider) unlisted(s foundProcesses, read map[string]bool) ([]reading, error) {
	names, err := p.named(disksDir, rootSuffix)
	names = slices.AppendSeq(names, maps.Keys(s.of))
	slices.Sort(names)
	var all []reading
	for _, name := range slices.Compact(names) {
		if read[name] {
			continue
		}
		r := reading{name: name}
		if r.observedVM, r.err = p.observeRemains(name, s); !errors.Is(r.err, fs.ErrNotExist) {
			all = append(all, r)
		}
	}
	return all, err
}

// viewer collects the observations of one look into an inventory.
type viewer struct {
	*Provider
	inv   *providers.Inventory
	known knowns
	disks map[string]observedDisk // by name

	networks map[providers.ID]networkFile
}

// called returns the planner's name of a disk: its present address, or its own name.
func (v *viewer) called(d observedDisk) string {
	if one, ok := v.known.byID[d.ID]; ok {
		return one.Address.String()
	}
	for _, one := range v.known.imports {
		if one.Kind == spec.Disk && d.Owner == nil && v.means(string(one.Import), spec.Disk, d.ID, d.Name) {
			return one.Address.String()
		}
	}
	if d.Owner != nil && d.copyOf == "" && d.Owner.ID == v.settings.Project.Lineage() {
		return d.Owner.Address.String()
	}
	return d.Name
}

// reportDisks puts the disks into the inventory, and each holder of a lock that is none of
// the host's VMs.
func (v *viewer) reportDisks(s foundProcesses) {
	all, err := v.observeDisks(s.all)
	if err != nil {
		v.inv.Partial[spec.Disk] = providers.Unread(err)
		return
	}
	for _, r := range all {
		if r.err != nil {
			v.inv.Unknown = append(v.inv.Unknown, providers.Unknown{Kind: spec.Disk, ID: r.ID, Name: r.name, Reason: r.err.Error()})
			continue
		}
		v.disks[r.name] = r.observedDisk
		v.inv.Objects = append(v.inv.Objects, r.described(v.diskPath(r.name)).Object())
		if r.lock.verdict == lockHeld || r.lock.verdict == lockStale {
			v.inv.Objects = append(v.inv.Objects, r.lock.object(diskLockClaim(r.name)))
		}
	}
}

// report puts one VM into the inventory.
func (v *viewer) report(r reading) {
	if r.err != nil {
		v.inv.Unknown = append(v.inv.Unknown, providers.Unknown{Kind: spec.VM, ID: r.ID, Name: r.name, Reason: r.err.Error()})
		return
	}
	r.disks, r.network = v.disks, v.calledNetwork
	v.inv.Objects = append(v.inv.Objects, r.described(v.called).Object())
	if r.lock.verdict == lockHeld {
		v.inv.Objects = append(v.inv.Objects, r.lock.object(lockClaim(r.name)))
	}
}
