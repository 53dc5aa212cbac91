package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
)

// isWorthWaking reports whether a plan could be carried out if there were no work in some VMs that are off: nothing is started for
// one that is refused all the same.
func (a *app) isWorthWaking(ctx context.Context, p *project, r round, asleep []spec.Address) (bool, error) {
	o := r.options
	if o.Allow.Dirty = maps.Clone(o.Allow.Dirty); o.Allow.Dirty == nil {
		o.Allow.Dirty = map[spec.Address]bool{}
	}
	for _, addr := range asleep {
		o.Allow.Dirty[addr] = true
	}
	for addr, record := range r.snapshot.Records {
		if slices.Contains(asleep, record.Inside) {
			o.Allow.Dirty[addr] = true
		}
	}
	plan, world, err := planner.Make(ctx, a.opener(p), p.config, r.snapshot, o)
	if err != nil {
		return false, err
	}
	return !plan.Forbidden(), world.Close()
}

// wake is a round that only starts VMs which are off, as their records say, so that the next round sees what is in them. They stay
// on if the next round is refused.
func (a *app) wake(ctx context.Context, p *project, m mission, r *round, asleep []spec.Address) error {
	recorded := *p
	a.addAllRecorded(&recorded, r.snapshot)
	start := mission{
		command: m.command, names: append([]string{"--wake"}, m.names...), verb: "Start", plan: m.plan, apply: m.apply, unasked: m.unasked,
		title: "Start " + strings.Join(view.Addresses(asleep), ", ") + ", to see what is in it",
	}
	start.apply.reach = "" // it only starts what ran before
	first := *r
	first.options = planner.Options{
		Types: r.options.Types, Project: r.options.Project, DigestKey: r.options.DigestKey, Busy: r.options.Busy,
		Scope: planner.Scope{Targets: asleep, Alone: true}, Running: map[spec.Address]bool{},
	}
	for _, addr := range asleep {
		first.options.Running[addr] = true
	}
	plan, world, err := planner.Make(ctx, a.opener(&recorded), recorded.config, r.snapshot, first.options)
	if err != nil {
		return err
	}
	a.logObserved(ctx, world)
	if err = a.agree(ctx, &recorded, start, first, plan); err == nil {
		var done executor.Summary
		_, done, err = a.applyPlan(ctx, &recorded, start, work{plan: plan, world: world, round: first})
		r.before, r.steps = r.before.Then(done), r.steps+len(plan.Steps)
	}
	r.woken, r.later, r.snapshot = true, true, r.journal.Snapshot()
	r.moves = planner.Moves(p.config, r.snapshot)
	r.snapshot = r.snapshot.With(r.moves...)
	return errors.Join(err, world.Close())
}
