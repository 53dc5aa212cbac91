package libvirt

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// diskJob is one step on a disk under way.
type diskJob struct {
	*job
	store  store
	listed listing
	hidden error         // the reason why the listing is incomplete; nil: it is complete
	at     diskPlace     // the place of the disk; its pool is nil if there is none
	disk   *observedDisk // the disk when the step began; nil: there was none
}

// Verb returns the operation of the step.
func (d *diskJob) Verb() (guard.Verb, error) {
	switch d.Op {
	case opDefine, opRedefine, opGrow:
		var err error
		if d.store, err = storeOf(d.Want); err != nil {
			return guard.Verb{}, err
		}
	}
	act, known := map[string]machine.Act{opDefine: d.define, opGrow: d.grow, opRedefine: d.mark, opUnmark: d.unmark, opDelete: d.delete}[d.Op]
	if !known {
		panic("unknown operation " + d.Op)
	}
	var seen *machine.SeenDisk
	if d.disk != nil {
		s := d.disk.described(d.location.URI)
		seen = &s
	}
	v := machine.DiskVerb(d.Work, seen, nil, act)
	switch d.Op {
	case opDefine:
		v.Need, v.Done = guard.Making, d.isMade
	case opGrow:
		v.Done = d.isGrown
	}
	return v, nil
}

// Look reads the disk that the step is about.
func (d *diskJob) Look(ctx context.Context) (*guard.Seen, error) {
	if err := d.find(ctx); err != nil || d.disk == nil {
		return nil, err
	}
	seen := d.disk.described(d.location.URI).Guarded()
	seen.Name = d.disk.Path // in words
	return seen, nil
}

// Values returns the attributes of the disk that libvirt sets. The step is done then: it leaves the
// listing to the next one.
func (d *diskJob) Values(context.Context) (map[string]cty.Value, error) {
	if d.hidden == nil {
		d.lastListed = d.listed.pools
	}
	return d.disk.described(d.location.URI).Values(), nil
}

// find reads the disk that the step is about. It lists the pools if they were not listed yet, or if
// the disk is not as in the listing.
func (d *diskJob) find(ctx context.Context) error {
	if d.hidden == nil && d.findListed(ctx) {
		return nil
	}
	var err error
	d.listed, d.hidden = d.filePools(ctx, d.connection)
	if d.disk, d.at, err = d.listed.find(ctx, d.connection, d.Object); err != nil {
		return fail(err, "read %s", d.Name)
	}
	if d.disk == nil && d.hidden != nil { // the disk may be in a pool that could not be listed
		return fail(d.hidden, "look for %s", d.Name)
	}
	return nil
}

// findListed reads the disk at its place in the listing. It reports whether the listing tells where
// the disk is, or that it is still to be made. Others may have changed the pools since: make asks
// libvirt for the names before it takes them.
func (d *diskJob) findListed(ctx context.Context) bool {
	if d.listed.pools == nil || !slices.Contains([]string{opDefine, opRedefine, opGrow}, d.Op) {
		return false
	}
	all := d.listed.places(d.Object)
	if len(all) == 0 && d.Op == opDefine && d.Expect == "" {
		d.disk, d.at = nil, diskPlace{}
		return true
	}
	if len(all) != 1 || isPath(d.Object) {
		return false
	}
	at := all[0]
	text, err := d.readMark(ctx, d.connection, at.in.file(sidecarOf(at.name)))
	if err != nil {
		return false
	}
	mark, err := parseSidecar(text)
	if err != nil || mark.Of != d.Object || mark.Volume != at.name {
		return false
	}
	at.pool.marks[at.name] = mark
	disk, err := at.observe(ctx, d.connection)
	if err != nil || disk == nil {
		return false
	}
	d.disk, d.at = disk, at
	return true
}

// Guard names the step and its disk.
func (d *diskJob) Guard() guard.Guard {
	return guard.Guard{Work: d.Work, Project: d.settings.Project, Thing: "volume", Look: func(guard.Seen) string {
		return fmt.Sprintf("virsh -c %s vol-dumpxml %s", d.location.URI, d.disk.Path)
	}}
}

// marked returns the wanted mark of the disk.
func (d *diskJob) marked(of providers.ID, volume string) sidecar {
	return sidecar{Volume: volume, DataDirID: d.settings.Project.DataDirID, Mark: providers.Mark{
		ID: d.settings.Project.Lineage(), Project: d.settings.Project.Name, Address: d.Address, Of: of, Generation: d.Generation,
	}}
}

// putMark writes a mark beside an existing or a future volume.
func (d *diskJob) putMark(ctx context.Context, in *filePool, mark sidecar, doing string) error {
	text, err := mark.bytes()
	if err != nil {
		return err
	}
	f := in.file(sidecarOf(mark.Volume))
	if in.has(f.name) {
		if v, err := f.see(ctx, d.connection); err == nil && v != nil && v.Capacity >= sidecarBytes {
			return d.Overwrite(ctx, in.Name, f.name, text)
		}
	}
	return d.put(ctx, f, content{bytes: text, doing: doing, fresh: !in.has(f.name)})
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
func (d *diskJob) makeFor(ctx context.Context, in *filePool, mark sidecar) error {
	if err := d.makeVolume(ctx, in, mark.Volume); err != nil && !isTaken(err) {
		return err
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
func (d *diskJob) madeMeanwhile(ctx context.Context, in *filePool, name string, cause error) (*guard.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	for range writeWaits {
		d.listed.pools = nil // somebody has changed them
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
	f := asFailure(cause, fmt.Sprintf("make volume %s in pool %s", name, in.Name))
	f.Seen = append(f.Seen, staysBehind(d.unmake(ctx, in, name))...)
	return nil, f
}

// complete gives an existing disk the wanted mark and size.
func (d *diskJob) complete(ctx context.Context) (*guard.Outcome, error) {
	if err := d.remark(ctx); err != nil {
		return nil, err
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
func (d *diskJob) poolForNew(ctx context.Context, volume string) (*filePool, error) {
	to, err := d.usablePool(ctx, d.Name)
	if err != nil {
		return nil, err
	}
	if s := d.listed.pool(to); s != nil && d.lacks(ctx, s, volume) {
		return s, nil
	}
	for waited := 0; ; waited++ {
		s, err := d.filePool(ctx, d.connection, to)
		if err != nil {
			return nil, fail(err, "define %s", d.Address)
		}
		if waited == writeWaits || !s.isBeingMarked(volume) {
			return d.listed.replace(s), nil
		}
		if err := d.sleep(ctx, writeWait); err != nil {
			return nil, fail(err, "define %s", d.Address)
		}
	}
}

// lacks reports whether a listed pool has neither a volume nor its mark, also by libvirt's own
// listing. libvirt knows what its clients have made, and lists a pool anew after each upload.
func (d *diskJob) lacks(ctx context.Context, s *filePool, volume string) bool {
	for _, name := range []string{volume, sidecarOf(volume)} {
		if s.has(name) {
			return false
		}
		if there, err := d.Has(ctx, s.Name, name); err != nil || there {
			return false
		}
	}
	return true
}

// make writes the mark of a disk, and makes its volume.
func (d *diskJob) make(ctx context.Context, in *filePool, name string) error {
	mark := d.marked(d.Object, name)
	if err := d.putMark(ctx, in, mark, "make volume "+name); err != nil {
		return err
	}
	if err := d.makeVolume(ctx, in, name); err != nil {
		return err
	}
	in.add(name, sidecarOf(name))
	in.marks[name] = mark
	return nil
}

func (d *diskJob) makeVolume(ctx context.Context, in *filePool, name string) error {
	d.say("making %s (%d bytes) in pool %s", name, d.store.Size, in.Name)
	return d.makeEmpty(ctx, in.file(name), volume{Format: d.store.Format, Capacity: d.store.Size}, "make volume "+name)
}

// unmake removes the mark of a volume that could not be made, if it is this disk's own.
func (d *diskJob) unmake(ctx context.Context, in *filePool, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	now, err := d.filePool(ctx, d.connection, in.pool)
	if err != nil || now.has(name) {
		return err
	}
	if mark, marked := now.marks[name]; marked && mark.Of == d.Object {
		if _, err := in.file(sidecarOf(name)).remove(ctx, d.connection); err != nil {
			return err
		}
	}
	_, err = d.removeEmptyPool(ctx, in.pool)
	return err
}

func (d *diskJob) volumeTaken(in *filePool, name string) error {
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say(
			fmt.Sprintf("look at it: virsh -c %s vol-dumpxml --pool %s %s", d.location.URI, in.Name, name),
			fmt.Sprintf("set another name in the block of %s, or import the volume", d.Address),
		),
		Err: fmt.Errorf("define %s: pool %s has a volume %s already, and it is not vmctl's", d.Address, in.Name, name),
	}
}
