package sim

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// define makes a VM. It completes a VM that an interrupted attempt left half made.
func (j *job) define(ctx context.Context) (*guard.Outcome, error) {
	if j.seen == nil {
		return j.put(ctx, j.newVM(j.Object, j.Name))
	}
	return j.put(ctx, j.seen.vmFile)
}

// redefine changes the configuration for the next start.
func (j *job) redefine(ctx context.Context) (*guard.Outcome, error) {
	return j.put(ctx, j.seen.vmFile)
}

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

// put writes a VM's file: first the mark, then its other files, and last the configuration,
// which makes the VM whole.
func (j *job) put(ctx context.Context, f vmFile) (*guard.Outcome, error) {
	p := j.settings.Project
	f.Owner = &owner{ID: p.Lineage(), Project: p.Name, Address: j.Address, Of: f.ID, Generation: j.Generation}
	half := f
	half.Config = nil
	if j.half() {
		return nil, errors.Join(j.injected(), j.writeVM(half))
	}
	if err := errors.Join(j.disksThere(j.want.Disks), j.free(j.want.Disks)); err != nil {
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
