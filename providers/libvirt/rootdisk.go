package libvirt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"vmctl/providers"
)

// rootPart ends the name of a vm's root disk, which is an overlay of its image: it takes room
// only for the guest's own data.
const rootPart = ".root.qcow2"

func rootVolume(id providers.ID) string { return string(id) + rootPart }

// pristine is the largest size in its pool (bytes) of an overlay that nobody has written to:
// its tables. A guest that ran from it has written more.
const pristine = 1 << 20

// ensureRoot returns the vm's root disk. An existing one stays, and grows if a larger one is
// wanted; otherwise it is made from the image.
func (j *job) ensureRoot(ctx context.Context, in pool) (markedImage, error) {
	if m, ok := j.ownImage(); ok {
		return m, j.growRoot(ctx, m)
	}
	v, err := j.ensureImage(ctx, in)
	if err != nil {
		return markedImage{}, err
	}
	name := rootVolume(j.Object)
	made, err := j.MakeVolume(ctx, in.Name, volume{
		Name: name, Format: formatQCOW2, Capacity: j.want.RootDisk, Backing: v.Path, BackingFormat: formatQCOW2,
	})
	if err != nil {
		return markedImage{}, j.rootFailure(ctx, in, err)
	}
	return markedImage{
		Source: j.want.Image.Source, SHA256: v.SHA256, Root: made,
	}, nil
}

func (j *job) rootFailure(ctx context.Context, in pool, err error) error {
	f := fail(err, "make the root disk of %s, %s in pool %s", j.Address, rootVolume(j.Object), in.Name)
	if f.Code != "disk_full" {
		return f
	}
	if now, err := j.Pool(ctx, in.Name); err == nil {
		in = now
	}
	f.Seen = []string{fmt.Sprintf("%s has %d bytes left", in.Path, in.Available)}
	f.Next = makeRoom(in)
	f.Err = fmt.Errorf("make the root disk of %s: the disk of pool %s is full", j.Address, in.Name)
	return f
}

// ownImage returns the domain's image from its mark; false: the domain has no root disk.
func (j *job) ownImage() (markedImage, bool) {
	if j.seen == nil || j.seen.owner() == nil || j.seen.owner().Image.Root == "" {
		return markedImage{}, false
	}
	m := j.seen.owner().Image
	m.Source = j.want.Image.Source
	return m, true
}

// growRoot gives the vm's root disk the wanted size, and tells a running guest.
func (j *job) growRoot(ctx context.Context, m markedImage) error {
	now, poolName, err := j.rootInfo(ctx, m.Root)
	if err != nil {
		return err
	}
	switch {
	case now.Capacity == j.want.RootDisk:
		return nil
	case now.Capacity > j.want.RootDisk:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "disk_shrinks",
			Next: providers.Say(fmt.Sprintf("write root_disk { size = %q } into %s", sizeWord(now.Capacity), j.Address)),
			Err: fmt.Errorf("change %s: its root disk has %d bytes, and a disk does not shrink to %d: what is at its end would be lost",
				j.Address, now.Capacity, j.want.RootDisk),
		}
	}
	if j.seen.power.on() {
		if err := j.ResizeDisk(ctx, j.seen.UUID, m.Root, j.want.RootDisk); err != nil {
			return fail(err, "grow the root disk of %s while it runs", j.Address)
		}
		return nil
	}
	if err := j.ResizeVolume(ctx, poolName, path.Base(m.Root), j.want.RootDisk); err != nil {
		return fail(err, "grow the root disk of %s", j.Address)
	}
	return nil
}

// rootInfo reads the volume at the path of a root disk.
func (j *job) rootInfo(ctx context.Context, file string) (v volume, poolName string, err error) {
	pools, err := j.pools(ctx)
	if err != nil {
		return v, "", fail(err, "find the pools of %s", j.Name)
	}
	for _, name := range pools {
		v, err := j.VolumeInfo(ctx, name, path.Base(file))
		switch {
		case errors.Is(err, errAbsent):
		case err != nil:
			return v, "", fail(err, "read the root disk of %s", j.Address)
		case v.Path == file:
			return v, name, nil
		}
	}
	return v, "", &providers.Problem{
		Outcome: providers.Failed, Code: "no_root_disk",
		Next: slices.Concat(
			providers.Say("see what there is: virsh -c "+j.location.URI+" vol-list POOL"),
			providers.SayVmctl("to begin again from the image: ", "apply", "--allow-replace="+j.Address.String()),
		),
		Err: fmt.Errorf("change %s: its root disk %s is gone", j.Address, file),
	}
}

// rootIsFree fails if somebody has written to an earlier root disk, whose domain was removed
// by hand.
func (j *job) rootIsFree(ctx context.Context, poolName string) error {
	name := rootVolume(j.Object)
	found, err := j.Pool(ctx, poolName)
	var left volume
	if err == nil && found.Active {
		left, err = j.VolumeInfo(ctx, poolName, name)
	}
	switch {
	case errors.Is(err, errAbsent), err == nil && left.Allocation <= pristine:
		return nil
	case err != nil:
		return fail(err, "look for an earlier root disk of %s", j.Address)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "root_disk_left",
		Seen: []string{fmt.Sprintf("%s holds %d bytes", left.Path, left.Allocation)},
		Next: providers.Say(
			fmt.Sprintf("keep it: move it out of the pool, then: virsh -c %s pool-refresh %s", j.location.URI, poolName),
			fmt.Sprintf("or throw away what is on it: virsh -c %s vol-delete --pool %s %s", j.location.URI, poolName, name),
		),
		Err: fmt.Errorf("define %s: the root disk of an earlier one is still there, and its domain is not", j.Address),
	}
}

// writtenRoots lists the object's root disks that somebody has written to, with the evidence
// that they stay: the domain was removed by hand, and nobody asked for the deletion of their
// data.
func (j *job) writtenRoots(ctx context.Context, pools []string) (keep, evidence []string, err error) {
	for _, poolName := range pools {
		left, err := j.VolumeInfo(ctx, poolName, rootVolume(j.Object))
		switch {
		case errors.Is(err, errAbsent), err == nil && left.Allocation <= pristine:
		case err != nil:
			return nil, nil, fail(err, "look for the root disk of %s, which is gone", j.Address)
		default:
			keep = append(keep, left.Path)
			evidence = append(evidence, fmt.Sprintf("its root disk stays, for %d bytes were written to it; to delete it: virsh -c %s vol-delete --pool %s %s",
				left.Allocation, j.location.URI, poolName, left.Name))
		}
	}
	return keep, evidence, nil
}

// removeRoot removes the root disk before the domain, and reports it: as long as the domain
// is there, the plan knows the owner of the disk.
func (j *job) removeRoot(ctx context.Context) (evidence []string, err error) {
	root := j.seen.ownRoot()
	if root == "" {
		return nil, nil
	}
	if err := j.nothingOverRoot(ctx, root); err != nil {
		return nil, err
	}
	if err := j.notOpen("delete the root disk of "+j.Address.String(), root); err != nil {
		return nil, err
	}
	j.storage.Lock()
	defer j.storage.Unlock()
	poolName, err := j.PoolOf(ctx, root)
	if err == nil {
		err = j.DeleteVolume(ctx, poolName, path.Base(root))
	}
	switch {
	case errors.Is(err, errAbsent):
		return nil, nil
	case err != nil:
		return nil, fail(err, "delete the root disk of %s, %s", j.Address, root)
	}
	return []string{"removed its root disk " + root}, nil
}

// nothingOverRoot fails if a volume is an overlay of the root disk, or another domain has
// the root disk or an overlay of it.
func (j *job) nothingOverRoot(ctx context.Context, root string) error {
	doing := fmt.Sprintf("delete the root disk of %s: see what begins from it", j.Address)
	all, err := j.filePools(ctx, j.connection)
	if err != nil {
		return fail(err, "%s", doing)
	}
	over, err := overlaysOf(ctx, j.connection, all, root)
	if err != nil {
		return fail(err, "%s", doing)
	}
	refs, err := j.Domains(ctx)
	if err != nil {
		return fail(err, "%s", doing)
	}
	r := diskIndex{paths: pathsOf(all)}
	for _, ref := range refs {
		if ref.UUID == j.seen.UUID {
			continue
		}
		other, err := observeDomain(ctx, j.connection, ref)
		switch {
		case errors.Is(err, errAbsent):
		case err != nil:
			return fail(err, "%s: read domain %s", doing, ref.Name)
		case slices.ContainsFunc(other.drives(), func(d drive) bool { return r.pathOf(d) == root || slices.Contains(d.Under, root) }):
			over = append(over, "domain "+ref.Name)
		}
	}
	return beginFromIt(j.Work, "its root disk "+root, over)
}

// beginFromIt returns the failure to delete a file that is the base of other files; nil:
// there are none.
func beginFromIt(w providers.Work, what string, over []string) error {
	if len(over) == 0 {
		return nil
	}
	others := strings.Join(over, " and ")
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_use", Seen: []string{others + " begins from it"},
		Next: providers.Say(
			"delete "+others+" first, if nobody needs it",
			fmt.Sprintf("or keep what it begins from: removed { from = %s, destroy = false }", w.Address),
		),
		Err: fmt.Errorf("delete %s: %s is what %s begins from, and would be lost with it", w.Address, what, others),
	}
}

// ownRoot returns the path of the domain's root disk; "": it has none.
func (s observedDomain) ownRoot() string {
	if s.owner() == nil {
		return ""
	}
	return s.owner().Image.Root
}

// ownFiles returns the volumes that were made for a domain from its image.
func (o *owner) ownFiles() []string {
	if o == nil {
		return nil
	}
	return slices.DeleteFunc([]string{o.Image.Root, o.Image.Seed}, func(file string) bool { return file == "" })
}

// rootSeen holds the observed volume of a domain's root disk.
type rootSeen struct {
	bytes      uint64
	gone       bool
	unreadable string
}

// seeRoot reads the volume of a domain's root disk; nil: it has none.
func seeRoot(ctx context.Context, c connection, s observedDomain) *rootSeen {
	root := s.ownRoot()
	if root == "" {
		return nil
	}
	poolName, err := c.PoolOf(ctx, root)
	var v volume
	if err == nil {
		v, err = c.VolumeInfo(ctx, poolName, path.Base(root))
	}
	switch {
	case errors.Is(err, errAbsent):
		return &rootSeen{gone: true}
	case err != nil:
		return &rootSeen{unreadable: fmt.Sprintf("read %s: %v", root, err)}
	default:
		return &rootSeen{bytes: v.Capacity}
	}
}
