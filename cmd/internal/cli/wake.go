package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/internal/ctyread"
	"vmctl/planner"
	"vmctl/spec"
)

// isWorthWaking reports whether a plan could be carried out if there were no work in some VMs that are off: nothing is started for
// one that is refused all the same. It fails if that plan reaches something else than was agreed to.
func (a *app) isWorthWaking(ctx context.Context, p *project, m mission, r round, asleep []spec.Address) (bool, error) {
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
	if err := a.reached(m, r, plan); err != nil {
		a.showPlan(p, m, r, plan)
		return false, errors.Join(err, world.Close())
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
		title: "Start " + strings.Join(view.Addresses(asleep), ", ") + ", to see what is in " + it(asleep),
	}
	start.apply.reach = "" // it only starts what ran before, for a plan of which that was compared
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
	r.woken, r.later, r.roused, r.snapshot = asleep, true, true, r.journal.Snapshot()
	r.moves = planner.Moves(p.config, r.snapshot)
	r.snapshot = r.snapshot.With(r.moves...)
	return errors.Join(err, world.Close())
}

// it returns the pronoun for some objects.
func it(all []spec.Address) string {
	if len(all) == 1 {
		return "it"
	}
	return "them"
}

// tellAwake warns of the VMs that a wake has started and that are on still, as their records say.
func (a *app) tellAwake(r round) {
	records := r.journal.Snapshot().Records
	on := slices.DeleteFunc(slices.Clone(r.woken), func(vm spec.Address) bool {
		record, there := records[vm]
		return !there || !ctyread.True(record.Values, "running")
	})
	if len(on) == 0 {
		return
	}
	names := view.Addresses(on)
	was, stay := "was", "stays"
	if len(on) > 1 {
		was, stay = "were", "stay"
	}
	view.Warning(a.errScreen(), strings.Join(names, ", ")+" "+was+" started to see what is in "+it(on)+", and "+stay+" on: "+
		a.commandLine("vm stop", planFlags{}, names...)+" stops "+it(on))
}
