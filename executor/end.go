package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// collect waits for an outcome, and returns it with all others that have arrived. It reports the
// end of ctx at once, also if a step that the end made fail was faster.
func (x *execution) collect(ctx context.Context) []outcome {
	var all []outcome
	select {
	case o := <-x.results:
		all = append(all, o)
	default:
	}
	if len(all) == 0 {
		select {
		case o := <-x.results:
			all = append(all, o)
		case <-ctx.Done():
			x.interrupt(ctx)
			all = append(all, <-x.results)
		}
	}
	for {
		select {
		case o := <-x.results:
			all = append(all, o)
		default:
			if ctx.Err() != nil && slices.ContainsFunc(all, func(o outcome) bool { return o.failure != nil }) {
				x.interrupt(ctx)
			}
			return all
		}
	}
}

// end gathers the results and the events of outcomes, for the next write of the journal.
func (x *execution) end(outcomes []outcome) {
	slices.SortStableFunc(outcomes, func(a, b outcome) int { return byAddress(x.Plan.Steps[a.step], x.Plan.Steps[b.step]) })
	for _, o := range outcomes {
		switch {
		case o.report != nil:
			x.reported(o)
			continue
		case o.gate:
			x.endClose(o)
		default:
			x.active--
			x.unwritten = append(x.unwritten, x.recordOutcome(&o)...)
			o.news = x.news(x.Plan.Steps[o.step].Address, x.Plan.Steps[o.step].Change)
		}
		if !o.gate || o.failure != nil {
			x.report(o)
		}
	}
}

// recordOutcome records an outcome, and returns its journal entries. A step that ended well fails if it
// leaves an object for which a postcondition does not hold.
func (x *execution) recordOutcome(o *outcome) []state.Entry {
	step := x.Plan.Steps[o.step]
	change := &x.Plan.Changes[step.Change]
	x.ends = append(x.ends, StepResult{Step: step, How: o.result.How, Failure: o.failure, Elapsed: o.elapsed})
	if o.failure != nil {
		e := x.entry(state.Failed, o.step)
		e.Error, e.Evidence = o.failure.Error(), o.failure.Seen
		if o.failure.Outcome == providers.Failed || o.failure.Outcome == providers.Timeout { // else nothing was done
			e.How = x.deletion(o.step)
		}
		if r, recorded := x.records[step.Address]; recorded {
			r, says := x.withFailure(r, step, o.failure)
			if step.Phase == providers.PhaseChange && r.Generation < change.Generation {
				r.Generation, says = change.Generation, true // the mark may have it already
			}
			if says {
				e.Put = &r
				x.remember(step.Address, r)
			}
		}
		if r, recorded := x.records[step.Address]; recorded && step.Provision != "" {
			r.Provisions = withProvision(r.Provisions, step.Provision, func(p *state.Provision) { p.Failed = failedWith(step, o.failure) })
			e.Put = &r
			x.remember(step.Address, r)
		}
		if r, kept := x.replaced[step.Change]; kept && o.failure.Restored {
			e.Put = &r
			x.remember(step.Address, r)
			delete(x.takenDown, step.Change) // it is up again, as it was
		}
		if step.Class == providers.Diagnostic {
			x.conclude(o)
			return []state.Entry{e}
		}
		x.states[o.step] = failed
		x.markFailed(step.Change)
		return []state.Entry{e}
	}
	switch step.Phase {
	case providers.PhaseDown:
		x.takenDown[step.Change] = x.still(step.Change, providers.PhaseUp)
	case providers.PhaseRelease: // which has other steps, too: they let go of nothing
		x.takenDown[step.Change] = x.takenDown[step.Change] || x.still(step.Change, providers.PhaseResume)
	case providers.PhaseUp, providers.PhaseResume:
		delete(x.takenDown, step.Change)
	case providers.PhasePrepare, providers.PhaseRecover, providers.PhaseFree, providers.PhaseRemove, providers.PhaseReserve,
		providers.PhaseMake, providers.PhaseChange, providers.PhaseReady, providers.PhaseTidy:
	}
	if !step.Record {
		x.expect[step.Address] = o.result.Fingerprint
	}
	if id := o.result.ID; id != "" && id != step.Object {
		x.renamed[step.Object] = id
	}
	e := x.entry(state.Done, o.step)
	e.How, e.Evidence = string(o.result.How), o.result.Evidence
	record, keep := x.record(step, change, o.result)
	switch {
	case keep:
		record = x.withheld(record)
		e.Put = &record
		x.remember(step.Address, record)
	case o.result.Gone || step.Op == planner.OpForget:
		e.Drop = true
		x.forget(step.Address)
	}
	if !step.Record && (o.result.How != providers.AlreadyTrue || step.Phase == providers.PhaseDown) { // it may have been off for a while
		x.became(step, change, o.result)
	}
	entries := []state.Entry{e}
	x.conclude(o)
	if step.Op == planner.OpSettle {
		note := x.entry(state.Note, o.step)
		note.Op = state.Settled
		entries = append(entries, note)
	}
	return entries
}

// conclude lets the steps that wait for a step go on, unless that leaves an object for which a postcondition
// does not hold: then its change has failed.
func (x *execution) conclude(o *outcome) {
	step := x.Plan.Steps[o.step]
	unmet := x.postcondition(step)
	if unmet == nil {
		x.pass(o.step)
		return
	}
	o.failure, o.unmet = unmet, true
	end := &x.ends[len(x.ends)-1]
	end.Failure, end.Step.Class = unmet, providers.Contractual
	x.states[o.step] = failed
	x.markFailed(step.Change)
}

// became lets what is inside of the object of a step find that as the step left it.
func (x *execution) became(step planner.Step, c *planner.Change, r providers.Result) {
	if r.Gone {
		x.World.Went(step.Address)
		for i := range x.Plan.Changes {
			if inner := &x.Plan.Changes[i]; slices.Contains(inner.Around, step.Address) { // it went, too
				delete(x.expect, inner.Address)
				x.World.Went(inner.Address)
			}
		}
		return
	}
	x.World.Became(step, cmp.Or(r.ID, c.ID), c.Name, x.records[step.Address].Values)
}

// markFailed records that a change has failed.
func (x *execution) markFailed(change int) {
	x.failures[change] = true
	if turn := x.Plan.Changes[change].Turn; turn != (spec.Address{}) {
		x.brokenTurns[turn] = true
	}
}

// report tells of an outcome, and halts after a contractual failure unless KeepGoing is
// set.
func (x *execution) report(o outcome) {
	step := x.Plan.Steps[o.step]
	event := Event{
		Kind: StepDone, Step: step, How: o.result.How, Evidence: o.result.Evidence,
		Failure: o.failure, Elapsed: o.elapsed, Conditions: o.news,
	}
	switch {
	case o.failure == nil:
	case step.Class == providers.Diagnostic && !o.unmet:
		event.Kind = StepWarned
	default:
		event.Kind = StepFailed
	}
	x.later(event)
	if event.Kind == StepFailed && !x.KeepGoing {
		x.halt(fmt.Sprintf("%s failed: no further change begins", step.Address))
	}
}

// drain waits for the running steps after the journal has failed. It reports their outcomes, and
// the next plan finds the results in the world.
func (x *execution) drain(ctx context.Context) error {
	x.halt("the journal cannot be written: no further step begins")
	x.tell()
	var errs []error
	for x.active+x.closing+x.awaiting > 0 {
		x.end(x.collect(ctx))
		errs = append(errs, x.write(ctx, nil))
	}
	return errors.Join(errs...)
}
