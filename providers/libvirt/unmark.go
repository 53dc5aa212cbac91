package libvirt

import (
	"context"
	"errors"

	"vmctl/providers"
)

// unmark removes the owner mark from the domain, and changes nothing else.
func (j *job) unmark(ctx context.Context) (providers.Result, error) {
	if j.seen == nil || j.seen.owner() == nil {
		return j.result(ctx, providers.AlreadyTrue, "it bears no mark")
	}
	if err := j.check(); err != nil {
		return providers.Result{}, err
	}
	if err := j.Unmark(ctx, j.seen.UUID); err != nil {
		return providers.Result{}, fail(err, "take the mark off %s", j.Name)
	}
	return j.result(ctx, providers.Done)
}

// unmark removes the mark beside the volume, which stays as it is.
func (d *diskJob) unmark(ctx context.Context) (providers.Result, error) {
	if d.disk == nil || d.disk.mark == nil {
		return d.result(ctx, providers.AlreadyTrue, "it bears no mark")
	}
	if err := d.expected(); err != nil {
		return providers.Result{}, err
	}
	if err := d.DeleteVolume(ctx, d.at.pool.Name, sidecarOf(d.disk.Name)); err != nil && !errors.Is(err, errAbsent) {
		return providers.Result{}, fail(err, "take the mark off %s", d.Name)
	}
	return providers.Result{ID: d.Object, How: providers.Done}, nil
}
