package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/atomicfile"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// diskJob is a step on a disk.
type diskJob struct {
	*Provider
	providers.Work
	log  providers.Log
	seen *observedDisk // as it was last read; nil: there is none
}

// Guard names the step and its disk.
func (j *diskJob) Guard() guard.Guard {
	return guard.Guard{Work: j.Work, Project: j.settings.Project, Thing: "disk", Look: func(now guard.Seen) string { return "ls -l " + j.diskDir(now.Name) }}
}

// Look reads the disk that the step is about.
func (j *diskJob) Look(ctx context.Context) (*guard.Seen, error) {
	if err := j.observe(ctx); err != nil || j.seen == nil {
		return nil, err
	}
	return j.described().Guarded(), nil
}

func (j *diskJob) described() *machine.SeenDisk {
	d := j.seen.described(j.diskPath(j.Name, dataDisk))
	return &d
}

func (j *diskJob) observe(ctx context.Context) error {
	d, err := j.readDisk(j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.seen = nil
		return nil
	case err != nil:
		return fail(err, "read the disk %s", j.Name)
	case d.id == j.Object:
	case j.Op == machine.OpDefine:
		return j.nameTaken(d.mark)
	case d.mark == nil && d.copied == nil && j.Prior != cty.NilVal && j.Phase != providers.PhaseMake:
		d.id = j.Object // the record's disk has lost its mark: the guard decides
	default: // another disk has the name, and this one is gone
		j.seen = nil
		return nil
	}
	f := j.find(ctx)
	d.lock = j.lockOf(j.Name, func(holder string) (string, bool) {
		s, err := j.readInstance(ctx, holder, f)
		if errors.Is(err, fs.ErrNotExist) {
			return "", false
		}
		if err != nil {
			return stateUnknown, true
		}
		return s.state, true
	})
	j.seen = d
	return nil
}

// nameTaken returns the failure to make a disk whose name another disk has. m is the mark of that; nil: it
// has none of its own.
func (j *diskJob) nameTaken(m *mark) error {
	if m != nil && m.Owner != nil && m.Owner.ID == j.settings.Project.Lineage() && j.Bears(m.Owner.Address) {
		return machine.MadeElsewhere(j.Work, "disk", j.Name, m.ID)
	}
	return &providers.Problem{
		Outcome: providers.Unsafe, Code: "name_taken",
		Next: providers.Say("look at it: ls -l "+j.diskDir(j.Name), fmt.Sprintf("set another name in the block of %s", j.Address)),
		Err:  fmt.Errorf("%s %s: a disk of the name %s exists already, and it is not the one to be made", j.Op, j.Address, j.Name),
	}
}

// Values returns the attributes of the disk that Lima sets.
func (j *diskJob) Values(context.Context) (map[string]cty.Value, error) {
	return j.described().Values(), nil
}

// Verb returns the operation of the step.
func (j *diskJob) Verb() (guard.Verb, error) {
	if j.Op == opRemoveRemains {
		return guard.Verb{Need: guard.Expected, Act: j.removeRemains}, nil
	}
	act, known := map[string]machine.Act{
		machine.OpDefine: j.define, machine.OpRedefine: j.redefine, machine.OpGrow: j.grow, machine.OpDelete: j.delete, machine.OpUnmark: j.unmark,
		machine.OpUnlock: j.release,
	}[j.Op]
	if !known {
		panic("unknown operation " + j.Op)
	}
	if j.seen == nil {
		return machine.DiskVerb(j.Work, nil, j.isWanted, act), nil
	}
	return machine.DiskVerb(j.Work, j.described(), j.isWanted, act), nil
}

func (j *diskJob) isWanted(context.Context) (bool, error) {
	return j.seen != nil && j.seen.mark != nil && machine.IsMarked(j.Work, j.seen.mark.Owner.mark()) && j.seen.size >= ctyread.Uint(j.Want, "size"), nil
}

func (j *diskJob) newMark() mark {
	p := j.settings.Project
	return mark{
		Format: markFormat, ID: j.Object, Name: j.Name, FSType: ctyread.Text(j.Want, "fs_type"),
		Owner: &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: j.Object, Generation: j.Generation},
	}
}

// define makes a disk in a folder of its own, with its mark, in the format that was asked for, and gives
// it its name last, at once. What it could not give the name is removed.
func (j *diskJob) define(ctx context.Context) (did *guard.Outcome, err error) {
	temp := j.diskDir(makingTemp + string(j.Object))
	defer func() {
		if err != nil {
			err = errors.Join(err, removeTree(temp))
		}
	}()
	err = removeTree(temp)
	if err == nil {
		err = os.MkdirAll(temp, 0o700)
	}
	if err == nil {
		err = writeJSON(filepath.Join(temp, markName), j.newMark())
	}
	if err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	size := strconv.FormatUint(ctyread.Uint(j.Want, "size"), 10)
	if err := j.tool(ctx, "disk", "make", filepath.Join(temp, dataDisk), ctyread.Text(j.Want, "format"), size); err != nil {
		return nil, err
	}
	err = j.locked(ctx, func() error { return j.publish(temp) })
	switch {
	case errors.Is(err, fs.ErrExist) || isNotEmpty(err):
		return nil, j.nameTaken(j.markNow())
	case err != nil:
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// publish gives a disk that is made in a folder its name. fs.ErrExist: another disk has it.
func (j *diskJob) publish(folder string) error {
	if err := j.dropEmpty(); err != nil {
		return err
	}
	if err := os.Rename(folder, j.diskDir(j.Name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Join(j.home, disksDir))
}

// markNow reads the mark of the disk that has the name by now; nil: it bears none of its own.
func (j *diskJob) markNow() *mark {
	m, err := readMark(j.diskPath(j.Name, markName))
	if err != nil || m.Name != j.Name {
		return nil
	}
	return &m
}

// dropEmpty removes what is left of an earlier disk of the name: its mark, and its lock. fs.ErrExist: a
// disk was made there meanwhile, of which it touches nothing.
func (j *diskJob) dropEmpty() error {
	if exists(j.diskPath(j.Name, dataDisk)) {
		return fs.ErrExist
	}
	m, err := readMark(j.diskPath(j.Name, markName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && m.Owner != nil && m.Owner.ID == j.settings.Project.Lineage() {
		return errors.Join(atomicfile.Remove(j.diskPath(j.Name, markName)), atomicfile.Remove(j.diskPath(j.Name, lockName)), atomicfile.Remove(j.diskDir(j.Name)))
	}
	return err
}

// redefine writes the mark anew.
func (j *diskJob) redefine(context.Context) (*guard.Outcome, error) {
	if err := writeJSON(j.diskPath(j.Name, markName), j.newMark()); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}

// grow makes the disk larger: through QEMU, if an instance runs with it, else by itself.
func (j *diskJob) grow(ctx context.Context) (*guard.Outcome, error) {
	if j.seen.lock.verdict == lockHeld {
		return nil, machine.Locked(j.Work, j.seen.lock.evidence)
	}
	if err := writeJSON(j.diskPath(j.Name, markName), j.newMark()); err != nil {
		return nil, fail(err, "grow %s", j.Name)
	}
	size := ctyread.Uint(j.Want, "size")
	if j.seen.size >= size {
		return guard.Did(providers.Done), nil
	}
	if j.seen.lock.verdict == lockUsed {
		if err := growAttached(ctx, j.path(j.seen.lock.holder, qmpSock), j.diskPath(j.Name, dataDisk), size); err != nil {
			return nil, fail(err, "grow %s, which the instance %s has", j.Name, j.seen.lock.holder)
		}
		return guard.Did(providers.Done, "QEMU has grown it while the instance "+j.seen.lock.holder+" runs"), nil
	}
	if err := j.tool(ctx, "disk", "grow", j.diskPath(j.Name, dataDisk), j.seen.format, strconv.FormatUint(size, 10)); err != nil {
		return nil, err
	}
	return guard.Did(providers.Done), nil
}

// tool runs vmctl-lima for the step.
func (j *diskJob) tool(ctx context.Context, args ...string) error {
	err := j.runTool(ctx, machine.AccelKVM, nil, nil, j.log, args...)
	if err == nil {
		return nil
	}
	f := fail(err, "%s %s", j.Op, j.Name)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		f.Seen = refused.said
	}
	return f
}

// release frees the disk from a holder that is confirmed to be gone.
func (j *diskJob) release(context.Context) (*guard.Outcome, error) {
	if j.seen.lock.verdict != lockStale {
		return nil, machine.Locked(j.Work, j.seen.lock.evidence)
	}
	if err := j.unlock(j.Name, j.seen.lock.target); err != nil {
		return nil, fail(err, "free the disk %s", j.Name)
	}
	return guard.Did(providers.Done, j.seen.lock.evidence), nil
}

// delete removes the disk, its mark last.
func (j *diskJob) delete(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		did, err := j.removeRemains(ctx)
		if err == nil {
			did.How = providers.AlreadyGone
		}
		return did, err
	}
	if j.seen.lock.verdict != lockFree {
		return nil, machine.Locked(j.Work, j.seen.lock.evidence)
	}
	if user, err := j.userOf(ctx); err != nil || user != "" {
		if err == nil {
			err = fmt.Errorf("the instance %s is defined with it", user)
		}
		f := fail(err, "delete the disk %s", j.Name)
		f.Outcome, f.Code = providers.Unsafe, "disk_in_use"
		return nil, f
	}
	if err := j.locked(ctx, func() error { return j.removeFolder(j.diskDir(j.Name), j.seen.mark) }); err != nil {
		return nil, fail(err, "delete %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// userOf returns an instance that is defined or runs with the disk; "": none.
func (j *diskJob) userOf(ctx context.Context) (string, error) {
	f := j.find(ctx)
	if f.err != nil {
		return "", f.err
	}
	names, err := j.names(j.home)
	if err != nil {
		return "", err
	}
	for _, name := range slices.AppendSeq(names, maps.Keys(f.of)) { // QEMU runs on without the folder of its instance
		s, err := j.readInstance(ctx, name, f)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("read the instance %s, which may be defined with it: %w", name, err)
		}
		all := namesOf(s.doc)
		for _, d := range s.drivers {
			all = append(all, j.attachedTo(d.Argv)...)
		}
		for _, disk := range all {
			if disk == j.Name {
				return name, nil
			}
		}
	}
	return "", nil
}

// removeRemains removes the remains of a disk that is gone.
func (j *diskJob) removeRemains(ctx context.Context) (*guard.Outcome, error) {
	err := removeTree(j.diskDir(makingTemp + string(j.Object)))
	m, markErr := readMark(j.diskPath(j.Name, markName))
	if err == nil && markErr == nil && m.ID == j.Object && !exists(j.diskPath(j.Name, dataDisk)) {
		err = j.locked(ctx, func() error { return j.removeFolder(j.diskDir(j.Name), &m) })
	}
	if err != nil {
		return nil, fail(err, "remove what is left of %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// unmark removes the owner from the mark of the disk, which stays as it is: it keeps its ID.
func (j *diskJob) unmark(context.Context) (*guard.Outcome, error) {
	m := *j.seen.mark
	m.Owner = nil
	if err := writeJSON(j.diskPath(j.Name, markName), m); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}
