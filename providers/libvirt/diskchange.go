package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// grow makes a disk larger in its place, and tells the guest that runs with it.
func (d *diskJob) grow(ctx context.Context) (*guard.Outcome, error) {
	if err := d.enlarge(ctx); err != nil {
		return nil, err
	}
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// isGrown reports whether the disk has the wanted size. It writes the mark, which may have been
// left to write.
func (d *diskJob) isGrown(ctx context.Context) (*guard.Outcome, error) {
	if d.disk == nil || d.disk.size() != d.store.Size {
		return nil, nil
	}
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.AlreadyTrue, fmt.Sprintf("it has %d bytes", d.store.Size)), nil
}

// enlarge gives the disk its wanted size, and checks the result.
func (d *diskJob) enlarge(ctx context.Context) error {
	if d.disk.size() > d.store.Size {
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "shrinks",
			Err: fmt.Errorf("grow %s: it has %d bytes, and %d are fewer: what is at its end would be cut off", d.Address, d.disk.size(), d.store.Size),
		}
	}
	users, err := d.users(ctx)
	if err != nil {
		return err
	}
	running := ""
	for _, u := range users {
		if len(u.layers) > 0 {
			return inLayers(d.Work, u.layers)
		}
		if u.job != "" {
			return busyWith(d.Work, u.job, u.endJob)
		}
		if !u.running {
			continue
		}
		if !u.ours {
			return d.inUse("grow", users)
		}
		running = u.uuid
	}
	if running != "" {
		err = d.ResizeDisk(ctx, running, d.disk.Path, d.store.Size)
	} else {
		err = d.ResizeVolume(ctx, d.at.pool.Name, d.disk.Name, d.store.Size)
	}
	if err != nil {
		return d.locked(fail(err, "grow %s to %d bytes", d.Address, d.store.Size), d.disk.Path)
	}
	now, err := d.VolumeInfo(ctx, d.at.pool.Name, d.disk.Name)
	if err != nil {
		return fail(err, "read %s after it was grown", d.Name)
	}
	if now.size() != d.store.Size {
		return fail(fmt.Errorf("it has %d bytes after it was grown", now.size()), "grow %s to %d bytes", d.Address, d.store.Size)
	}
	return nil
}

// mark writes the mark of this address to the volume, after a move or for an import.
func (d *diskJob) mark(ctx context.Context) (*guard.Outcome, error) {
	if err := d.remark(ctx); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// isMarked reports whether the disk bears the wanted mark.
func (d *diskJob) isMarked() bool {
	return d.disk != nil && d.disk.mark != nil && machine.IsMarked(d.Work, &d.disk.mark.Mark)
}

// remark writes the mark if it is not as wanted. From then on the disk's ID is the one in the
// mark.
func (d *diskJob) remark(ctx context.Context) error {
	of := d.disk.id()
	if d.disk.mark == nil {
		of = volumeID(d.settings.Project.Lineage(), d.disk.Path)
	}
	if d.isMarked() {
		return nil
	}
	if err := d.putMark(ctx, *d.at.pool, d.marked(of, d.disk.Name)); err != nil {
		return fail(err, "write the mark of %s", d.Name)
	}
	d.Object = of
	return nil
}

// delete removes a disk that no domain has: first its volume, and then its mark. A disk that
// is gone may have left its mark.
func (d *diskJob) delete(ctx context.Context) (*guard.Outcome, error) {
	how := providers.AlreadyGone
	var evidence []string
	if d.disk != nil {
		users, err := d.users(ctx)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, d.inUse("delete", users)
		}
		if err := d.nothingOver(ctx); err != nil {
			return nil, err
		}
		if err := d.notOpen("delete "+d.Address.String(), d.disk.Path); err != nil {
			return nil, err
		}
		if err := d.DeleteVolume(ctx, d.at.pool.Name, d.disk.Name); err != nil && !errors.Is(err, errAbsent) {
			return nil, d.locked(fail(err, "delete %s", d.Name), d.disk.Path)
		}
		if _, err := d.VolumeInfo(ctx, d.at.pool.Name, d.disk.Name); !errors.Is(err, errAbsent) {
			return nil, fail(errors.Join(errors.New("it is still there"), err), "delete %s", d.Name)
		}
		how = providers.Done
		evidence = append(evidence, "removed volume "+d.disk.Path)
	}
	if d.at.pool != nil && d.at.pool.has(sidecarOf(d.at.name)) {
		if err := d.DeleteVolume(ctx, d.at.pool.Name, sidecarOf(d.at.name)); err != nil && !errors.Is(err, errAbsent) {
			return nil, fail(err, "remove the mark of %s, whose volume is deleted", d.Name)
		}
	}
	for _, s := range d.listed {
		emptied, err := d.removeEmptyPool(ctx, s.Name)
		if err != nil {
			return nil, fail(err, "tidy up after %s, which is deleted", d.Name)
		}
		if emptied {
			evidence = append(evidence, "removed the empty pool "+s.Name)
		}
	}
	return guard.Did(how, evidence...), nil
}

// nothingOver fails if a volume is an overlay of the disk: the overlay would lose its base. A
// volume that cannot be read may be one.
func (d *diskJob) nothingOver(ctx context.Context) error {
	over, err := overlaysOf(ctx, d.connection, d.listed, d.disk.Path)
	if err != nil {
		return fail(err, "delete %s: see what begins from it", d.Address)
	}
	return beginFromIt(d.Work, "volume "+d.disk.Path, over)
}

// users returns the domains that have the disk.
func (d *diskJob) users(ctx context.Context) ([]user, error) {
	refs, err := d.Domains(ctx)
	if err != nil {
		return nil, fail(err, "see who uses %s", d.Name)
	}
	r := diskIndex{paths: pathsOf(d.listed)}
	var all []observedDomain
	for _, ref := range refs {
		s, err := observeDomain(ctx, d.connection, ref)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return nil, fail(err, "see who uses %s: read domain %s", d.Name, ref.Name)
		}
		all = append(all, s)
	}
	return r.users(d.Provider, d.disk.Path, all), nil
}

func (d *diskJob) inUse(doing string, users []user) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "disk_in_use", Seen: []string{names(users) + " has it"},
		Next: providers.Say("see its disks: virsh -c " + d.location.URI + " domblklist " + users[0].name),
		Err:  fmt.Errorf("%s %s: volume %s is used by %s", doing, d.Address, d.disk.Path, names(users)),
	}
}

// isLocked reports whether QEMU could not have a disk because somebody else has it.
func isLocked(message string) bool {
	return strings.Contains(message, "write\" lock") || strings.Contains(message, "write lock") ||
		strings.Contains(message, "shared \"write\"") || strings.Contains(message, "another process using the image")
}
