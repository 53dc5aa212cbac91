package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/spec"
)

var _ providers.Cleaner = (*Objects)(nil)

// CleanUp implements providers.Cleaner. It looks again first: a name may lead to another object by now, and a container may
// run.
func (p *Objects) CleanUp(ctx context.Context, o providers.Object) (providers.How, error) {
	raws, warned, err := p.raw(ctx, o.Kind)
	if err != nil {
		return "", fmt.Errorf("remove %s %s: %w", things[o.Kind], o.Name, err)
	}
	for _, raw := range raws {
		for _, s := range read(o.Kind, raw) {
			if s.name != o.Name {
				continue
			}
			if s.flaw == nil && s.kind == spec.Container && s.labels[labelToken] != "" { // it was inspected, too
				s, s.flaw = p.details(ctx, s)
			}
			if s.flaw != nil {
				return "", fmt.Errorf("remove %s %s: %w", things[o.Kind], o.Name, s.flaw)
			}
			return p.cleanUp(ctx, o, s)
		}
	}
	if warned != nil {
		return "", fmt.Errorf("remove %s %s: %w", things[o.Kind], o.Name, warned)
	}
	return providers.AlreadyGone, nil
}

func (p *Objects) cleanUp(ctx context.Context, o providers.Object, now seen) (providers.How, error) {
	if now.fingerprint() != o.Fingerprint {
		return "", &providers.Problem{
			Outcome: providers.Stale, Code: "stale", Next: providers.Say("see what it is now, and repeat the command if it is still to go"),
			Err: fmt.Errorf("remove %s %s: it is not as it was shown any more", things[o.Kind], o.Name),
		}
	}
	if o.Kind == spec.Network {
		if err := p.unconnected(ctx, now.name); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	how, err := p.removeObject(ctx, now)
	if err != nil {
		return "", refusal(err, "remove %s %s", things[o.Kind], o.Name)
	}
	return how, nil
}

// unconnected fails if a container is on a network, also one that is down: the engine would remove the network all the same,
// and the container could never start again.
func (p *Objects) unconnected(ctx context.Context, network string) error {
	raws, warned, err := p.raw(ctx, spec.Container)
	if err = errors.Join(err, warned); err != nil {
		return fmt.Errorf("remove network %s: see which containers use it: %w", network, err)
	}
	for _, raw := range raws {
		for _, c := range read(spec.Container, raw) {
			if c.flaw != nil {
				return fmt.Errorf("remove network %s: see which containers use it: %w", network, c.flaw)
			}
			if slices.Contains(c.networks, network) {
				return &providers.Problem{
					Outcome: providers.Unsafe, Code: "retained", Next: providers.Say("remove that container first, if nobody needs it"),
					Err: fmt.Errorf("remove network %s: container %s is on it", network, c.name),
				}
			}
		}
	}
	return nil
}
