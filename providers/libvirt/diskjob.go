package libvirt

import (
	"context"
	"fmt"

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

// Values returns the attributes of the disk that libvirt sets.
func (d *diskJob) Values(context.Context) (map[string]cty.Value, error) {
	return d.disk.described(d.location.URI).Values(), nil
}

// find reads the disk that the step is about.
func (d *diskJob) find(ctx context.Context) error {
	var err error
	d.listed, err = d.filePools(ctx, d.connection)
	d.disk, d.at = nil, diskPlace{}
	for _, at := range d.listed.places(d.Object) {
		if d.at.pool == nil {
			d.at = at
		}
		seen, err := at.observe(ctx, d.connection)
		if err != nil {
			return fail(err, "read %s", d.Name)
		}
		if seen != nil {
			d.disk, d.at = seen, at
			return nil
		}
	}
	if err != nil { // the disk may be in a pool that could not be listed
		return fail(err, "look for %s", d.Name)
	}
	return nil
}

// Guard names the step and its disk.
func (d *diskJob) Guard() guard.Guard {
	return guard.Guard{Work: d.Work, Project: d.settings.Project, Thing: "volume", Look: func(guard.Seen) string {
		return fmt.Sprintf("virsh -c %s vol-dumpxml %s", d.location.URI, d.disk.Path)
	}}
}

// marked returns the wanted mark of the disk.
func (d *diskJob) marked(of providers.ID, volume string) sidecar {
	return sidecar{Volume: volume, Seat: d.settings.Project.Seat, Mark: providers.Mark{
		ID: d.settings.Project.Lineage(), Project: d.settings.Project.Name, Address: d.Address, Of: of, Generation: d.Generation,
	}}
}

// putMark writes a mark beside an existing or a future volume.
func (d *diskJob) putMark(ctx context.Context, in *filePool, mark sidecar) error {
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
	return d.put(ctx, f, content{bytes: text, doing: "make volume " + mark.Volume, fresh: !in.has(f.name)})
}
