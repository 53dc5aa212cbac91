package planner

import (
	"context"
	"errors"
	"maps"

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
	p, err := planIn(ctx, open, w, c, s, o)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	return p, w, nil
}

// planIn compares, previews and orders what was observed. Before that it looks for work inside of what would end.
func planIn(ctx context.Context, open Open, w *World, c *spec.Config, s *state.Snapshot, o Options) (*Plan, error) {
	d, err := Diff(c, s, w, o)
	if err != nil {
		return nil, err
	}
	found, err := w.lookInside(ctx, open, d, c, s, o)
	if err != nil {
		return nil, err
	}
	if found {
		if d, err = Diff(c, s, w, o); err != nil {
			return nil, err
		}
	}
	if unnamed := d.unnamed(); o.Visitors != nil && len(unnamed) > 0 {
		visitors, err := o.Visitors(ctx, unnamed)
		if err != nil {
			return nil, err
		}
		o.Busy = maps.Clone(o.Busy)
		if o.Busy == nil {
			o.Busy = map[spec.Address][]state.Holder{}
		}
		maps.Copy(o.Busy, visitors)
		if d, err = Diff(c, s, w, o); err != nil {
			return nil, err
		}
	}
	if err := preview(ctx, d, w); err != nil {
		return nil, err
	}
	return Order(d, w)
}
