package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

func (a *app) diskCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "disk",
		Short: "Look at disks, and release locks whose holders are gone",
		Long: "Look at disks, and release locks whose holders are gone.\n\n" +
			"Apply and destroy make, grow and remove disks. A VM uses a disk if its block has an\n" +
			"additional_disk that names it.",
		Args: cobra.ArbitraryArgs,
		RunE: a.group,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the disks, their users and the holders of their locks",
			Long: "List the disks of the files, the disks of the state, and those that bear the\n" +
				"project's mark, with the VMs that are defined with them, the present holders of\n" +
				"their locks, and the findings. The command changes nothing and takes no lock.",
			Args: between(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error { return a.diskList(cmd.Context()) },
		},
		a.diskUnlockCommand(),
	)
	return cmd
}

func (a *app) diskList(ctx context.Context) (err error) {
	s, err := a.observe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.world.Close()) }()
	doc := view.DisksDocument{
		FormatVersion: view.FormatVersion, Project: s.project.owner.Name, ID: s.project.owner.Lineage(), Disks: s.disks(),
	}
	a.show(doc, func(screen view.Screen) { view.Disks(screen, doc) })
	for _, d := range doc.Disks {
		if d.State == "unknown" {
			return status{code: classRefused.code()}
		}
	}
	return nil
}

// disks lists the disks of the files and the state, and the orphans.
func (s observation) disks() []view.DiskEntry {
	all := []view.DiskEntry{}
	shown := map[*providers.Object]bool{}
	for _, addr := range known(s.project, s.snapshot) {
		if addr.Kind != spec.Disk {
			continue
		}
		v := s.at(addr)
		shown[v.object] = true
		all = append(all, s.disk(v))
	}
	for _, system := range s.world.Systems() {
		for i := range system.Inventory.Objects {
			o := &system.Inventory.Objects[i]
			if o.Kind != spec.Disk || shown[o] || planner.MarkingOf(o, s.project.owner) != planner.Ours {
				continue
			}
			d := s.disk(observedAddress{address: o.Owner.Address, name: o.Name, object: o, system: system})
			d.State, d.Reason = "orphan", "it is in neither the spec nor the state"
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b view.DiskEntry) int { return cmp.Compare(a.Address, b.Address) })
	return all
}

func (s observation) disk(v observedAddress) view.DiskEntry {
	status := v.status()
	d := view.DiskEntry{
		Address: v.address.String(), Provider: status.Provider, Object: v.name, ID: status.ID, State: status.State, Reason: status.Reason,
		UsedBy: []string{}, Lock: view.DiskLock{State: "unknown", Holders: []string{}}, Findings: view.FindingEntries(nil, s.own), Next: status.Next,
	}
	attrs := cty.NilVal
	if v.resource != nil {
		attrs = v.resource.Want
	}
	if v.object != nil {
		attrs = v.object.Attrs
		d.UsedBy, d.Lock = s.usersOf(v), s.lockOf(v)
		found := slices.Clone(v.object.Findings)
		for i := range found {
			found[i].Address = v.address
		}
		d.Findings = view.FindingEntries(found, s.own)
	}
	d.Format, d.Path = ctyread.Text(attrs, "format"), ctyread.Text(attrs, "path")
	if size := ctyread.KnownAttr(attrs, "size"); size != cty.NilVal && size.Type() == cty.Number {
		n, _ := size.AsBigFloat().Uint64()
		d.Size = &n
	}
	return d
}

// usersOf lists the machines that are defined with a disk.
func (s observation) usersOf(v observedAddress) []string {
	users := []string{}
	for i := range v.system.Inventory.Objects {
		if o := &v.system.Inventory.Objects[i]; planner.UsesDisk(o, v.object) {
			users = append(users, s.called(v.system, o))
		}
	}
	slices.Sort(users)
	return users
}

// called returns the address of an object if it is ours, else the name that its system gives
// it.
func (s observation) called(system *planner.System, o *providers.Object) string {
	for addr, r := range s.snapshot.Records {
		if r.ID == string(o.ID) && addr.Kind == o.Kind {
			return addr.String()
		}
	}
	if planner.MarkingOf(o, s.project.owner) == planner.Ours {
		return o.Owner.Address.String()
	}
	return system.Ref.Type + " " + string(o.Kind) + " " + quoted(o.Name)
}

// lockOf describes the lock of a disk. Its holders are machines that run with the disk, or
// the holders that the provider found.
func (s observation) lockOf(v observedAddress) view.DiskLock {
	lock := view.DiskLock{State: "free", Holders: []string{}}
	for i := range v.system.Inventory.Objects {
		if o := &v.system.Inventory.Objects[i]; planner.RunsWith(o, v.object) {
			lock.State, lock.Holders = "held", append(lock.Holders, s.called(v.system, o))
		}
	}
	slices.Sort(lock.Holders)
	for _, f := range v.object.Findings {
		switch {
		case f.Kind == providers.FindHeldLock:
			lock.State, lock.Holders = "held", append(lock.Holders, f.Evidence...)
		case f.Kind == providers.FindStaleLock && lock.State == "free":
			lock.State, lock.Holders = "stale", append(lock.Holders, f.Evidence...)
		}
	}
	return lock
}
