package libvirt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

func contentOf(name string, content []byte) upload {
	return upload{Name: name, Size: uint64(len(content)), Content: bytes.NewReader(content)}
}

// define makes a disk: its mark, and then its volume. It completes a disk that an interrupted
// attempt left half made.
//
// If two data directories make one disk at once, it belongs to the first that writes its
// mark. The other never writes over that mark: it makes the volume for the first, which may
// have been killed, and plans anew.
func (d *diskJob) define(ctx context.Context) (*guard.Outcome, error) {
	name := volumeOf(d.Name, d.store.Format)
	in, err := d.poolForNew(ctx, name)
	if err != nil {
		return nil, err
	}
	if in.has(name) { // its pool was missing before, and is known again
		if err := d.find(ctx); err != nil {
			return nil, err
		}
		if d.disk != nil {
			return d.complete(ctx)
		}
		if mark := in.marks[name]; d.isOfAnotherDataDir(mark) {
			return nil, machine.MadeElsewhere(d.Work, "volume", name, mark.Of)
		}
		return nil, d.volumeTaken(in, name)
	}
	var evidence []string
	mark, marked := in.marks[name]
	switch {
	case marked && mark.ID != d.settings.Project.Lineage() || in.unreadable[name] != "":
		return nil, d.volumeTaken(in, sidecarOf(name))
	case d.isOfAnotherDataDir(mark):
		return nil, d.makeFor(ctx, in, mark)
	case marked && mark.Of != d.Object:
		evidence = append(evidence, "removed what an earlier one left: "+sidecarOf(name))
	}
	if err := d.make(ctx, in, name); err != nil {
		return d.madeMeanwhile(ctx, in, name, err)
	}
	return guard.Did(providers.Done, evidence...), nil
}

// isMade completes a disk that exists.
func (d *diskJob) isMade(ctx context.Context) (*guard.Outcome, error) {
	if d.disk == nil {
		return nil, nil
	}
	return d.complete(ctx)
}

// isOfAnotherDataDir reports whether a mark names this address, and an object that another data
// directory of the project makes or has made.
func (d *diskJob) isOfAnotherDataDir(m sidecar) bool {
	p := d.settings.Project
	return m.ID == p.Lineage() && m.Address == d.Address && m.Of != d.Object && m.DataDirID != "" && m.DataDirID != p.DataDirID
}

// makeFor makes the volume that another data directory has marked.
func (d *diskJob) makeFor(ctx context.Context, in filePool, mark sidecar) error {
	if err := d.makeVolume(ctx, in, mark.Volume); err != nil && !isTaken(err) {
		return d.unmade(ctx, err, in.pool, mark.Volume)
	}
	return machine.MadeElsewhere(d.Work, "volume", mark.Volume, mark.Of)
}

// isTaken reports whether a volume could not be made because it exists, or because somebody
// is just making it (storageVolCreateXML in libvirt's storage_driver.c).
func isTaken(err error) bool {
	return strings.Contains(err.Error(), "exists already") || strings.Contains(err.Error(), "already in use")
}

// madeMeanwhile returns the result of a failed creation: another data directory may have made
// the volume, for itself or with the mark of this one.
func (d *diskJob) madeMeanwhile(ctx context.Context, in filePool, name string, cause error) (*guard.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for range writeWaits {
		now, err := d.filePool(ctx, d.connection, in.pool)
		if mark := now.marks[name]; err == nil && d.isOfAnotherDataDir(mark) {
			return nil, machine.MadeElsewhere(d.Work, "volume", name, mark.Of)
		}
		if !isTaken(cause) && (err != nil || !now.has(name) && !now.isBeingMarked(name)) {
			break
		}
		if d.find(ctx) == nil && d.disk != nil {
			return d.complete(ctx)
		}
		if d.sleep(ctx, writeWait) != nil {
			break
		}
	}
	f := d.unmade(ctx, cause, in.pool, name)
	f.Seen = append(f.Seen, staysBehind(d.unmake(ctx, in, name))...)
	return nil, f
}

// complete gives an existing disk the wanted mark and size.
func (d *diskJob) complete(ctx context.Context) (*guard.Outcome, error) {
	if !d.isMarked() {
		if err := d.putMark(ctx, *d.at.pool, d.marked(d.disk.id(), d.disk.Name)); err != nil {
			return nil, fail(err, "write the mark of %s", d.Name)
		}
	}
	if d.disk.size() < d.store.Size {
		if err := d.enlarge(ctx); err != nil {
			return nil, err
		}
	}
	return guard.Did(providers.AlreadyTrue, "it exists"), nil
}

// To write a mark or make a volume takes milliseconds: after some seconds, the other writer
// has ended.
const (
	writeWaits = 30
	writeWait  = 100 * time.Millisecond
)

// poolForNew returns the pool for a new disk. It waits while somebody writes the mark of the
// volume.
func (d *diskJob) poolForNew(ctx context.Context, volume string) (filePool, error) {
	to, err := d.usablePool(ctx, d.connection)
	if err != nil {
		return filePool{}, asFailure(err, "find a pool for "+d.Name)
	}
	for waited := 0; ; waited++ {
		s, err := d.filePool(ctx, d.connection, to)
		if err != nil {
			return filePool{}, fail(err, "define %s", d.Address)
		}
		if waited == writeWaits || !s.isBeingMarked(volume) {
			return s, nil
		}
		if err := d.sleep(ctx, writeWait); err != nil {
			return filePool{}, fail(err, "define %s", d.Address)
		}
	}
}

// libvirtUnit is the unit to which libvirt has qemu-img round up the size of a new volume
// (bytes). vmctl makes the volume smaller and grows it to an exact size.
const libvirtUnit = 1024

// make writes the mark of a disk, and makes its volume.
func (d *diskJob) make(ctx context.Context, in filePool, name string) error {
	if err := d.putMark(ctx, in, d.marked(d.Object, name)); err != nil {
		return err
	}
	return d.makeVolume(ctx, in, name)
}

func (d *diskJob) makeVolume(ctx context.Context, in filePool, name string) error {
	d.say("making %s (%d bytes) in pool %s", name, d.store.Size, in.Name)
	_, err := d.MakeVolume(ctx, in.Name, volume{Name: name, Format: d.store.Format, Capacity: d.store.Size / libvirtUnit * libvirtUnit})
	if err == nil && d.store.Size%libvirtUnit != 0 {
		err = d.ResizeVolume(ctx, in.Name, name, d.store.Size)
	}
	return err
}

// unmade returns the failure to make a volume.
func (d *diskJob) unmade(ctx context.Context, err error, in pool, name string) *providers.Problem {
	f := fail(err, "make volume %s in pool %s", name, in.Name)
	switch f.Code {
	case "disk_full":
		if now, err := d.Pool(ctx, in.Name); err == nil {
			in = now
		}
		f.Err = fmt.Errorf("make volume %s: the disk of pool %s is full", name, in.Name)
		f.Seen = []string{fmt.Sprintf("%s has %d bytes left", in.Path, in.Available)}
		f.Next = providers.Say("make room: df -h "+in.Path, "or choose another pool in the provider's block")
	case "no_permission":
		f.Next = providers.Say("see who may write there: ls -ld "+in.Path, "or choose another pool in the provider's block")
	}
	return f
}

// unmake removes the mark of a volume that could not be made, if it is this disk's own.
func (d *diskJob) unmake(ctx context.Context, in filePool, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	now, err := d.filePool(ctx, d.connection, in.pool)
	if err != nil || now.has(name) {
		return err
	}
	if mark, marked := now.marks[name]; marked && mark.Of == d.Object {
		if err := d.DeleteVolume(ctx, in.Name, sidecarOf(name)); err != nil && !errors.Is(err, errAbsent) {
			return err
		}
	}
	_, err = d.removeEmptyPool(ctx, in.Name)
	return err
}

func (d *diskJob) volumeTaken(in filePool, name string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say(
			fmt.Sprintf("look at it: virsh -c %s vol-dumpxml --pool %s %s", d.location.URI, in.Name, name),
			fmt.Sprintf("set another name in the block of %s, or import the volume", d.Address),
		),
		Err: fmt.Errorf("define %s: pool %s has a volume %s already, and it is not vmctl's", d.Address, in.Name, name),
	}
}
