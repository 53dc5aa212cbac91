package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// diskJob is a step on a disk.
type diskJob struct {
	*task
	want diskWant
	seen *observedDisk // the disk when the step began; nil: there was none
}

// Verb returns the operation of the step.
func (j *diskJob) Verb() (guard.Verb, error) {
	if j.Op == opClear {
		return guard.Verb{Need: guard.Expected, Act: j.clear}, nil
	}
	act, known := map[string]machine.Act{
		opDefine: j.define, opRedefine: j.redefine, opGrow: j.grow, opDelete: j.delete, opUnmark: j.letGo, opUnlock: j.release,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	var seen *machine.SeenDisk
	if j.seen != nil {
		d := j.seen.described(j.diskPath(j.Name))
		seen = &d
	}
	return machine.DiskVerb(j.Work, seen, j.isWanted, act), nil
}

// Look reads the disk that the step is about.
func (j *diskJob) Look(ctx context.Context) (*guard.Seen, error) {
	if err := j.observe(ctx); err != nil || j.seen == nil {
		return nil, err
	}
	return j.seen.described(j.diskPath(j.Name)).Guarded(), nil
}

// observe reads the disk that the step is about.
func (j *diskJob) observe(ctx context.Context) error {
	s := j.newRunner().find(ctx, "")
	if s.err != nil {
		return fail(s.err, "read what runs the VMs of the host")
	}
	d, err := j.observeDisk(j.Name, s.all)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil
	case err != nil:
		return fail(err, "read the disk %s", j.Name)
	case d.ID == j.Object, j.Imports && d.Owner != nil && d.Owner.Address == j.Address && d.ID == j.newID():
		j.seen = &d
	case j.Op == opDefine && d.bears(j.settings.Project.Lineage(), j.Address):
		return machine.MadeElsewhere(j.Work, "disk", j.Name, d.ID)
	case j.Op == opDefine:
		return &providers.Problem{
			Outcome: providers.Unsafe, Code: "name_taken",
			Next: providers.Say("look at it: "+j.diskPath(j.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
			Err:  fmt.Errorf("%s %s: a disk of the name %s exists already (%s), and it is not the one to be made", j.Op, j.Address, j.Name, d.ID),
		}
	default: // another disk has the name, and this one is gone
		j.seen = nil
	}
	return nil
}

// Guard names the step and its disk.
func (j *diskJob) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "disk", Look: func(now guard.Seen) string { return j.diskPath(now.Name) }}
}

// Values returns the attributes of the disk that the host sets.
func (j *diskJob) Values(context.Context) (map[string]cty.Value, error) {
	return j.seen.described(j.diskPath(j.Name)).Values(), nil
}

// define makes a disk: first its mark, and then its file, which makes it whole.
func (j *diskJob) define(context.Context) (*guard.Outcome, error) {
	if err := j.markFree(); err != nil {
		return nil, err
	}
	if err := j.mark(j.Object); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	if j.seen == nil {
		if err := j.allocate(j.diskPath(j.Name), int64(j.want.size)); err != nil {
			return nil, fail(err, "%s %s", j.Op, j.Name)
		}
	}
	return guard.Did(providers.Done), nil
}

// markFree fails if the mark of another project's disk, or one without an owner, lies at the
// place of this disk's mark.
func (j *diskJob) markFree() error {
	f, err := j.readMark(j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fail(err, "%s %s", j.Op, j.Name)
	case f.Owner != nil && f.Owner.ID == j.settings.Project.Lineage():
		return nil
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken", Next: providers.Say("look at it: " + j.diskMark(j.Name)),
		Err: fmt.Errorf("%s %s: %s is the mark of somebody else's disk", j.Op, j.Address, j.diskMark(j.Name)),
	}
}

func (j *diskJob) mark(id providers.ID) error {
	p := j.settings.Project
	return j.write(j.diskMark(j.Name), diskFile{
		Format: fileFormat, ID: id, Name: j.Name, As: j.want.as,
		Owner: &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: id, Generation: j.Generation},
	})
}

func (j *diskJob) isWanted(context.Context) (bool, error) {
	return j.seen != nil && machine.IsMarked(j.Work, j.seen.Owner.mark()) && j.seen.size >= j.want.size, nil
}

// redefine writes the mark anew. An imported disk gets its new ID with it.
func (j *diskJob) redefine(context.Context) (*guard.Outcome, error) {
	id := j.seen.ID
	if j.seen.Owner == nil && filepath.IsAbs(string(id)) { // it has no ID of its own
		id = j.newID()
	}
	if err := j.mark(id); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// grow writes the mark of the disk and makes it larger, whether a VM uses it or not.
func (j *diskJob) grow(context.Context) (*guard.Outcome, error) {
	if j.seen.lock.verdict == lockHeld {
		return nil, machine.Locked(j.Work, j.seen.lock.evidence)
	}
	// The size changes last: until then the plan still has something to do.
	if err := j.mark(j.seen.ID); err != nil {
		return nil, fail(err, "grow %s", j.Name)
	}
	if j.seen.size < j.want.size {
		if err := os.Truncate(j.diskPath(j.Name), int64(j.want.size)); err != nil {
			return nil, fail(err, "grow %s", j.Name)
		}
	}
	return guard.Did(providers.Done), nil
}

// release frees the disk from a holder that is confirmed to be gone.
func (j *diskJob) release(context.Context) (*guard.Outcome, error) {
	free, err := j.unlock(j.diskLock(j.Name))
	if err == nil && !free {
		err = errors.New(j.seen.lock.evidence)
	}
	if err != nil {
		return nil, fail(err, "free the disk %s", j.Name)
	}
	return guard.Did(providers.Done, j.seen.lock.evidence), nil
}

// delete removes the disk, its mark last.
func (j *diskJob) delete(context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		if err := j.unmark(); err != nil {
			return nil, fail(err, "delete %s", j.Name)
		}
		return guard.Did(providers.AlreadyGone), nil
	}
	if err := j.deletable(); err != nil {
		return nil, err
	}
	if err := atomicfile.Remove(j.diskPath(j.Name)); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	if err := j.unmark(); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// deletable fails if the disk must not be deleted as it is.
func (j *diskJob) deletable() error {
	if j.seen == nil {
		return nil
	}
	if j.seen.lock.verdict != lockFree {
		return machine.Locked(j.Work, j.seen.lock.evidence)
	}
	users, err := j.users([]string{j.Name}, "")
	if err != nil {
		return fail(err, "delete %s: see who uses it", j.Name)
	}
	if by := users[j.Name]; len(by) > 0 {
		return j.inUse(j.Name, by)
	}
	return nil
}

// clear removes the remains of a disk that is gone.
func (j *diskJob) clear(context.Context) (*guard.Outcome, error) {
	if j.seen != nil {
		return nil, fail(errors.New("it is there"), "remove what is left of %s", j.Name)
	}
	if err := j.unmark(); err != nil {
		return nil, fail(err, "remove what is left of %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// letGo removes the owner mark from the disk, which stays as it is.
func (j *diskJob) letGo(context.Context) (*guard.Outcome, error) {
	if err := j.unmark(); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return &guard.Outcome{How: providers.Done, NotGone: true}, nil
}

// unmark removes the mark of a disk that is gone, if it was this disk's, and the empty
// folders.
func (j *diskJob) unmark() error {
	f, err := j.readMark(j.Name)
	if err == nil && f.ID == j.Object {
		err = atomicfile.Remove(j.diskMark(j.Name))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return j.sweep()
}

func diskWantOf(v cty.Value) diskWant {
	return diskWant{size: ctyread.Uint(v, "size"), as: ctyread.Text(v, "format")}
}

// newID returns the ID for an imported disk. It is always the same, so that the plan finds
// the disk again after an interrupted import (RFC 9562, version 8).
func (j *diskJob) newID() providers.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "vmctl imported disk\x00%s\x00%s\x00%s", j.settings.Project.Lineage(), j.Address, j.Name))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return providers.ID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
