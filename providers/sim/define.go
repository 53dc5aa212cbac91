package sim

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// isWanted reports whether the VM's file is as wanted.
func (j *job) isWanted(context.Context) (bool, error) {
	return j.seen != nil && j.seen.onDisk && j.seen.Config != nil && j.seen.Owner != nil && reflect.DeepEqual(*j.seen.Config, j.want) &&
		j.seen.Owner.Generation == j.Generation && j.seen.Owner.Address == j.Address && j.hasAll(), nil
}

// hasAll reports whether a running VM has every wanted disk.
func (j *job) hasAll() bool {
	if !j.seen.on() || j.seen.run == nil {
		return true
	}
	has := names(j.seen.run.With.Disks)
	return !slices.ContainsFunc(j.want.Disks, func(a attached) bool { return !slices.Contains(has, a.Name) })
}

// marked returns the file of the VM with its mark: of a new VM if there is none yet.
func (j *job) marked() vmFile {
	f := j.newVM(j.Object, j.Name)
	if j.seen != nil {
		f = j.seen.vmFile
	}
	p := j.settings.Project
	f.Owner = &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: f.ID, Generation: j.Generation}
	return f
}

// put makes or changes a VM: it writes first the mark, then the other files, and last the
// configuration, which makes the VM whole. It completes a VM that an interrupted attempt left
// half made.
func (j *job) put(ctx context.Context) (*guard.Outcome, error) {
	f := j.marked()
	if err := errors.Join(j.disksThere(j.want.Disks), j.free(j.want.Disks), j.networksThere(ctx)); err != nil {
		return nil, err
	}
	if err := j.attach(ctx, &f); err != nil {
		return nil, err
	}
	if err := j.runnerOf(f).prepare(j, f); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	f.Config = &j.want
	if err := j.writeVM(f); err != nil {
		return nil, fail(err, "%s %s", j.Op, j.Name)
	}
	return guard.Did(providers.Done), nil
}
