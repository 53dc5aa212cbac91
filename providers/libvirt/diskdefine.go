package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"vmctl/providers"
)

func contentOf(name string, content []byte) upload {
	return upload{Name: name, Size: uint64(len(content)), Content: bytes.NewReader(content)}
}

// define makes a disk: its mark, and then its volume. What an interrupted attempt
// left half made is completed.
func (d *diskJob) define(ctx context.Context) (providers.Result, error) {
	if d.disk != nil {
		return d.complete(ctx)
	}
	if err := d.expected(); err != nil {
		return providers.Result{}, err
	}
	in, err := d.shelfForNew(ctx)
	if err != nil {
		return providers.Result{}, err
	}
	name := volumeOf(d.Name, d.store.Format)
	var evidence []string
	if in.has(name) { // its pool was not known any more, and is again
		if err := d.find(ctx); err != nil {
			return providers.Result{}, err
		}
		if d.disk != nil {
			return d.complete(ctx)
		}
		return providers.Result{}, d.volumeTaken(in, name)
	}
	if mark, ok := in.marks[name]; ok && mark.ID != d.settings.Project.Lineage() || in.unreadable[name] != "" {
		return providers.Result{}, d.volumeTaken(in, sidecarOf(name))
	} else if ok && mark.Of != d.Object {
		evidence = append(evidence, "removed what an earlier one left: "+sidecarOf(name))
	}
	if err := d.make(ctx, in, name); err != nil {
		return providers.Result{}, err
	}
	return d.result(ctx, providers.Done, evidence...)
}

// complete makes of a disk that is there what it was to be.
func (d *diskJob) complete(ctx context.Context) (providers.Result, error) {
	if d.disk.mark == nil || d.disk.mark.Generation != d.Generation || d.disk.mark.Address != d.Address {
		if err := d.putMark(ctx, *d.at.shelf, d.marked(d.disk.id(), d.disk.Name)); err != nil {
			return providers.Result{}, fail(err, "write the mark of %s", d.Name)
		}
	}
	if d.disk.size() < d.store.Size {
		if err := d.enlarge(ctx); err != nil {
			return providers.Result{}, err
		}
	}
	return d.result(ctx, providers.AlreadyTrue, "it exists")
}

// shelfForNew is the pool that a new disk goes to.
func (d *diskJob) shelfForNew(ctx context.Context) (shelf, error) {
	to, err := d.usablePool(ctx, d.connection)
	if err != nil {
		return shelf{}, asFailure(err, "find a pool for "+d.Name)
	}
	s, err := d.shelf(ctx, d.connection, to)
	if err != nil {
		return shelf{}, fail(err, "define %s", d.Address)
	}
	return s, nil
}

// libvirtUnit is what libvirt has qemu-img round the size of a new volume up to
// (bytes). What is between is had by growing.
const libvirtUnit = 1024

func (d *diskJob) make(ctx context.Context, in shelf, name string) error {
	err := d.putMark(ctx, in, d.marked(d.Object, name))
	if err == nil {
		d.say("making %s (%d bytes) in pool %s", name, d.store.Size, in.Name)
		_, err = d.MakeVolume(ctx, in.Name, volume{Name: name, Format: d.store.Format, Capacity: d.store.Size / libvirtUnit * libvirtUnit})
	}
	if err == nil && d.store.Size%libvirtUnit != 0 {
		err = d.ResizeVolume(ctx, in.Name, name, d.store.Size)
	}
	if err == nil {
		return nil
	}
	f := d.unmade(ctx, err, in.pool, name)
	f.Seen = append(f.Seen, staysBehind(d.unmake(ctx, in.Name, name))...)
	return f
}

// unmade says why a volume could not be made.
func (d *diskJob) unmade(ctx context.Context, err error, in pool, name string) *providers.Failure {
	f := fail(err, "make volume %s in pool %s", name, in.Name)
	switch f.Code {
	case "disk_full":
		if now, err := d.Pool(ctx, in.Name); err == nil {
			in = now
		}
		f.Err = fmt.Errorf("make volume %s: the disk of pool %s is full", name, in.Name)
		f.Seen = []string{fmt.Sprintf("%s has %d bytes left", in.Path, in.Available)}
		f.Next = []string{"make room: df -h " + in.Path, "or choose another pool in the provider's block"}
	case "no_permission":
		f.Next = []string{"see who may write there: ls -ld " + in.Path, "or choose another pool in the provider's block"}
	}
	return f
}

// unmake removes the mark of a volume that could not be made, as long as no volume
// is there.
func (d *diskJob) unmake(ctx context.Context, in, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if _, err := d.VolumeInfo(ctx, in, name); !errors.Is(err, errAbsent) {
		return err
	}
	if err := d.DeleteVolume(ctx, in, sidecarOf(name)); err != nil && !errors.Is(err, errAbsent) {
		return err
	}
	_, err := d.removeEmptyPool(ctx, in)
	return err
}

func (d *diskJob) volumeTaken(in shelf, name string) error {
	return &providers.Failure{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: []string{
			fmt.Sprintf("look at it: virsh -c %s vol-dumpxml --pool %s %s", d.place.URI, in.Name, name),
			fmt.Sprintf("set another name in the block of %s, or import the volume", d.Address),
		},
		Err: fmt.Errorf("define %s: pool %s has a volume %s already, and it is not vmctl's", d.Address, in.Name, name),
	}
}
