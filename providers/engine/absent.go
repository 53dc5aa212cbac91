package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"vmctl/providers"
	"vmctl/spec"
)

// absentPoll is the time between two listings while an object that was removed is still listed.
const absentPoll = 100 * time.Millisecond

// removeObject removes an object, without force if it is no image of which force is wanted, and returns once the engine does not list it any more. Removing one that is
// gone, or that is being removed, succeeds.
func (p *Objects) removeObject(ctx context.Context, s seen) (providers.How, error) {
	if err := p.c.ready(ctx); err != nil {
		return "", err
	}
	err := p.requestRemoval(ctx, s)
	switch {
	case errdefs.IsNotFound(err):
		return providers.AlreadyGone, nil
	case err != nil && !p.isBeingRemoved(ctx, s):
		return "", err
	}
	if err := p.awaitAbsent(ctx, s); err != nil {
		return "", err
	}
	return providers.Done, nil
}

func (p *Objects) requestRemoval(ctx context.Context, s seen) (err error) {
	switch s.kind { //nolint:exhaustive // an engine has no other kinds
	case spec.Image:
		_, err = p.c.ImageRemove(ctx, s.id, client.ImageRemoveOptions{PruneChildren: true, Force: s.forced})
	case spec.Volume:
		if !validName.MatchString(s.name) {
			return fmt.Errorf("its name is %q", s.name)
		}
		_, err = p.c.VolumeRemove(ctx, s.name, client.VolumeRemoveOptions{})
	case spec.Network:
		_, err = p.c.NetworkRemove(ctx, s.id, client.NetworkRemoveOptions{})
	case spec.Container:
		_, err = p.c.ContainerRemove(ctx, s.id, client.ContainerRemoveOptions{})
	default:
		panic("unknown kind " + string(s.kind))
	}
	return err
}

// isBeingRemoved reports whether the engine is removing a container already, as it says by a refusal of another request.
func (p *Objects) isBeingRemoved(ctx context.Context, s seen) bool {
	if s.kind != spec.Container {
		return false
	}
	now, err := p.inspect(ctx, s.id)
	return isAbsent(err) || err == nil && now.state == stateRemoving
}

// awaitAbsent waits until no list of the engine shows an object that was removed.
func (p *Objects) awaitAbsent(ctx context.Context, s seen) error {
	sleep := p.soonFirst()
	for {
		listed, err := p.isListed(ctx, s)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("see whether it is gone: %w", err)
		}
		if err == nil && !listed {
			return nil
		}
		if sleep(ctx, absentPoll) != nil {
			return fmt.Errorf("it was removed, and the engine still lists it: %w", context.Cause(ctx))
		}
	}
}

// isListed reports whether a list of the engine shows an object. Another object that has its name by now is not it.
func (p *Objects) isListed(ctx context.Context, s seen) (bool, error) {
	raws, warned, err := p.raw(ctx, s.kind)
	if err = errors.Join(err, warned); err != nil {
		return false, err
	}
	for _, raw := range raws {
		for _, now := range read(s.kind, raw) {
			if now.id == s.id && now.imageID == s.imageID && now.labels[labelToken] == s.labels[labelToken] {
				return true, nil
			}
		}
	}
	return false, nil
}
