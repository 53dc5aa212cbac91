package libvirt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vmctl/providers"
)

// pristine is the largest size in its pool (bytes) of an overlay that nobody has written to:
// its tables. A guest that ran from it has written more.
const pristine = 1 << 20

// ensureRoot returns the vm's root disk. An existing one stays, and grows if a larger one is
// wanted; otherwise it is made from the image.
func (j *job) ensureRoot(ctx context.Context, in pool) (markedImage, error) {
	if m, ok := j.ownImage(); ok {
		return m, j.growRoot(ctx, m)
	}
	image, sha256, err := j.ensureImage(ctx, in)
	if err != nil {
		return markedImage{}, err
	}
	f := in.file(kindRoot.name(string(j.Object), ""))
	if err := j.makeEmpty(ctx, f, volume{
		Format: formatQCOW2, Capacity: j.want.RootDisk, Backing: image.path(), BackingFormat: formatQCOW2,
	}, "make the root disk of "+j.Address.String()); err != nil {
		return markedImage{}, err
	}
	return markedImage{
		Source: j.want.Image.Source, SHA256: sha256, Root: f.path(),
	}, nil
}

// ownImage returns the domain's image from its mark; false: the domain has no root disk.
func (j *job) ownImage() (markedImage, bool) {
	m := j.seen.mark().Image
	if m.Root == "" {
		return m, false
	}
	m.Source = j.want.Image.Source
	return m, true
}

// growRoot gives the vm's root disk the wanted size, and tells a running guest.
func (j *job) growRoot(ctx context.Context, m markedImage) error {
	f, now, err := j.rootInfo(ctx, m.Root)
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
	if err := j.resize(ctx, f, j.want.RootDisk, j.seen.power.on(), j.seen.UUID); err != nil {
		return fail(err, "grow the root disk of %s", j.Address)
	}
	return nil
}

// rootInfo finds and reads a root disk, which must exist.
func (j *job) rootInfo(ctx context.Context, file string) (poolFile, *volume, error) {
	f, v, err := j.look(ctx, file)
	if err != nil {
		return f, nil, fail(err, "read the root disk of %s", j.Address)
	}
	if v != nil {
		return f, v, nil
	}
	return f, nil, &providers.Problem{
		Outcome: providers.Failed, Code: "no_root_disk",
		Next: slices.Concat(
			providers.Say("see what there is: virsh -c "+j.location.URI+" vol-list POOL"),
			providers.SayVmctl("to begin again from the image: ", "apply", "--allow-replace="+j.Address.String()),
		),
		Err: fmt.Errorf("change %s: its root disk %s is gone", j.Address, file),
	}
}

// writtenRoot returns the object's root disk in a pool, whose domain was removed by hand, if
// somebody has written to it; nil: none. Nobody asked for the deletion of their data. throw is
// the command that deletes it.
func (j *job) writtenRoot(ctx context.Context, in pool) (left *volume, throw string, err error) {
	f := in.file(kindRoot.name(string(j.Object), ""))
	left, err = f.see(ctx, j.connection)
	switch {
	case err != nil:
		return nil, "", fail(err, "look for an earlier root disk of %s", j.Address)
	case left == nil || left.Allocation <= pristine:
		return nil, "", nil
	}
	return left, fmt.Sprintf("virsh -c %s vol-delete --pool %s %s", j.location.URI, in.Name, f.name), nil
}

// rootIsFree fails if somebody has written to an earlier root disk.
func (j *job) rootIsFree(ctx context.Context, in pool) error {
	left, throw, err := j.writtenRoot(ctx, in)
	if left == nil || err != nil {
		return err
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "root_disk_left",
		Seen: []string{fmt.Sprintf("%s holds %d bytes", left.Path, left.Allocation)},
		Next: providers.Say(
			fmt.Sprintf("keep it: move it out of the pool, then: virsh -c %s pool-refresh %s", j.location.URI, in.Name),
			"or throw away what is on it: "+throw,
		),
		Err: fmt.Errorf("define %s: the root disk of an earlier one is still there, and its domain is not", j.Address),
	}
}

// writtenRoots lists the object's root disks that somebody has written to, with the evidence
// that they stay.
func (j *job) writtenRoots(ctx context.Context, pools []pool) (keep, evidence []string, err error) {
	for _, in := range pools {
		left, throw, err := j.writtenRoot(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		if left != nil {
			keep = append(keep, left.Path)
			evidence = append(evidence, fmt.Sprintf("its root disk stays, for %d bytes were written to it; to delete it: %s", left.Allocation, throw))
		}
	}
	return keep, evidence, nil
}

// removeRoot removes the root disk before the domain, and reports it: as long as the domain
// is there, the plan knows the owner of the disk.
func (j *job) removeRoot(ctx context.Context) (evidence []string, err error) {
	root := j.seen.mark().Image.Root
	if root == "" {
		return nil, nil
	}
	all, hidden := j.filePools(ctx, j.connection)
	if err := j.unused(ctx, all, hidden, root); err != nil {
		return nil, err
	}
	f, err := j.locate(ctx, j.connection, root)
	removed := false
	if err == nil {
		removed, err = f.remove(ctx, j.connection)
	}
	if err != nil && !errors.Is(err, errAbsent) {
		return nil, fail(err, "delete the root disk of %s, %s", j.Address, root)
	}
	if !removed {
		return nil, nil
	}
	return []string{"removed its root disk " + root}, nil
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

// ownFiles returns the volumes that were made for a domain from its image.
func (o owner) ownFiles() []string {
	return slices.DeleteFunc([]string{o.Image.Root, o.Image.Seed}, func(file string) bool { return file == "" })
}

// rootSeen holds the observed volume of a domain's root disk.
type rootSeen struct {
	bytes      uint64
	gone       bool
	unreadable string
}

// root reads the volume of a domain's root disk; nil: it has none.
func (p *Provider) root(ctx context.Context, c connection, s observedDomain, r diskIndex) *rootSeen {
	root := s.mark().Image.Root
	if root == "" {
		return nil
	}
	f, _, exists := r.at(root)
	v, err := (*volume)(nil), p.hidden(ctx, c, r, root)
	if exists {
		v, err = f.see(ctx, c)
	}
	switch {
	case err != nil:
		return &rootSeen{unreadable: fmt.Sprintf("read %s: %v", root, err)}
	case v == nil:
		return &rootSeen{gone: true}
	default:
		return &rootSeen{bytes: v.Capacity}
	}
}
