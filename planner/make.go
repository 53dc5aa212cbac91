package planner

import (
	"context"
	"errors"

	"vmctl/spec"
	"vmctl/state"
)

// Make observes, compares, previews and orders in one go. The caller closes the World; on
// an error it is closed already and nil.
func Make(ctx context.Context, open Open, c *spec.Config, s *state.Snapshot, o Options) (*Plan, *World, error) {
	w, err := Observe(ctx, open, c, s, o)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	p, err := planIn(ctx, w, c, s, o)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return p, w, nil
}

// planIn compares, previews and orders what was observed.
func planIn(ctx context.Context, w *World, c *spec.Config, s *state.Snapshot, o Options) (*Plan, error) {
	d, err := Diff(c, s, w, o)
	if err != nil {
		return nil, err
	}
	if err := preview(ctx, d, w); err != nil {
		return nil, err
	}
	return Order(d, w)
}
