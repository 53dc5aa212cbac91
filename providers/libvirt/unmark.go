package libvirt

import (
	"context"
	"errors"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// unmark removes the owner mark from the domain, and changes nothing else.
func (j *job) unmark(ctx context.Context) (*guard.Outcome, error) {
	if err := j.Unmark(ctx, j.seen.UUID); err != nil {
		return nil, fail(err, "take the mark off %s", j.Name)
	}
	return guard.Did(providers.Done), nil
}

// unmark removes the mark beside the volume, which stays as it is.
func (d *diskJob) unmark(ctx context.Context) (*guard.Outcome, error) {
	if err := d.DeleteVolume(ctx, d.at.pool.Name, sidecarOf(d.disk.Name)); err != nil && !errors.Is(err, errAbsent) {
		return nil, fail(err, "take the mark off %s", d.Name)
	}
	return &guard.Outcome{How: providers.Done, NotGone: true}, nil
}
