package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// begins returns the journal entries that say that steps begin.
func (x *execution) begins(steps []int) []state.Entry {
	var entries []state.Entry
	for _, i := range steps {
		entry := x.entry(state.Begin, i)
		if x.needsReservation(i) {
			x.keepReplaced(i)
			reserved := x.withheld(x.reservation(i))
			entry.Put = &reserved
			x.remember(entry.Address, reserved)
		} else if r, recorded := x.records[entry.Address]; recorded && x.Plan.Steps[i].Phase == providers.PhaseUp && len(r.Conditions) > 0 {
			off := x.withheld(r) // after a crash, what was true before the object was found off is not taken for true of the next start
			entry.Put = &off
		}
		entries = append(append(entries, x.forgetEntries(i)...), entry)
	}
	return entries
}

// begin starts steps whose begin is written down.
func (x *execution) begin(ctx context.Context, steps []int) {
	for _, i := range steps {
		x.states[i] = running
		x.active++
		step := x.Plan.Steps[i]
		x.emit(Event{Kind: StepStarted, Step: step, Deadline: step.Timeout})
		work, err := x.workOf(i)
		x.wants[i] = work.Want
		needless := err == nil && x.isUnchanged(step, work)
		go func() {
			began := x.Now()
			var result providers.Result
			var failure *providers.Problem
			if needless {
				result = providers.Result{How: providers.NotNeeded, Fingerprint: work.Expect, Evidence: []string{"its script and variables did not change"}}
			} else {
				result, failure = x.do(ctx, step, work, err)
			}
			x.results <- outcome{step: i, result: result, failure: failure, elapsed: x.Now().Sub(began)}
		}()
	}
}

// forgetEntries returns the journal entry that keeps the ID of an object which a change lets go of,
// before its first step: after a crash nothing else may name the object.
func (x *execution) forgetEntries(i int) []state.Entry {
	step := x.Plan.Steps[i]
	id := cmp.Or(x.records[step.Address].ID, string(step.Object))
	if id == "" || x.steps[step.Change][0] != i || !x.Plan.Changes[step.Change].LetsGo() {
		return nil
	}
	note := x.entry(state.Note, i)
	note.Op, note.Address, note.ID = state.Forgotten, spec.Address{}, id
	return []state.Entry{note}
}

// needsReservation reports whether a step may leave remains of an object that has no record yet:
// vmctl has to find them after a crash, even if the block is gone by then.
func (x *execution) needsReservation(i int) bool {
	step := x.Plan.Steps[i]
	return step.Phase == providers.PhaseMake || step.Phase == providers.PhaseReserve && x.Plan.Changes[step.Change].Action == providers.Create
}

// work joins a step with the values that are known only during apply.
func (x *execution) work(i int) (providers.Work, error) {
	step := x.Plan.Steps[i]
	change := &x.Plan.Changes[step.Change]
	if err := x.conditional.mistakes[x.conditional.decidingChange(i)]; err != nil {
		return providers.Work{Step: step.Step}, err
	}
	if unmet := x.precondition(step); unmet != nil {
		return providers.Work{Step: step.Step}, unmet
	}
	w := providers.Work{
		Step: step.Step, Expect: x.expect[step.Address], Prior: change.Prior, Want: change.Change.Want,
		Policy: change.Policy, Generation: change.Generation, Replaced: change.Replaced, Was: change.Was,
		KeepLogs: x.KeepLogs,
	}
	if r, ok := x.records[step.Address]; ok {
		w.Prior, w.Starts = r.Values, r.Starts
		if r.Reserved { // a reservation is no proof that an unmarked object is the reserved one
			w.Prior = cty.NilVal
		}
	}
	if id, ok := x.renamed[step.Object]; ok {
		w.Object = id
	}
	w.Uses = x.uses(change)
	if w.Want == cty.NilVal || change.Want == nil || change.Want.Want.IsWhollyKnown() {
		return w, nil
	}
	if !needsWanted(step) {
		if !w.Want.IsWhollyKnown() {
			w.Want = cty.NilVal
		}
		return w, nil
	}
	resource, err := x.resolved(change)
	if err != nil {
		return w, err
	}
	w.Want = fillUnknown(w.Want, resource.Want)
	return w, nil
}

// workOf returns the work of a step, with the digest of its script.
func (x *execution) workOf(i int) (providers.Work, error) {
	w, err := x.work(i)
	if err == nil && w.Provision != "" {
		w.Digest = x.DigestKey.Provision(x.records[w.Address].ID, w.Provision, spec.Labelled(w.Want, providers.ProvisionAttr, w.Provision))
	}
	return w, err
}

func (x *execution) do(ctx context.Context, step planner.Step, w providers.Work, err error) (providers.Result, *providers.Problem) {
	var stale *providers.Problem
	if errors.As(err, &stale) {
		return providers.Result{}, stale
	}
	if err != nil {
		return providers.Result{}, &providers.Problem{Outcome: providers.Failed, Code: "evaluate", Err: err}
	}
	if step.Record {
		return providers.Result{ID: step.Object, How: providers.Done}, nil
	}
	if kind := step.Condition; kind != "" && producerOf(&x.Plan.Changes[step.Change], kind) == "" {
		return providers.Result{How: providers.NotNeeded, Fingerprint: w.Expect, Evidence: []string{kind + " is not applicable: nothing reports it here"}}, nil
	}
	w.Halt = ctx.Done()
	if step.Phase != providers.PhaseReady { // an interrupted wait loses nothing, anything else ends safely first
		ctx = context.WithoutCancel(ctx)
	}
	if step.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, step.Timeout)
		defer cancel()
	}
	ctx, decide := context.WithCancelCause(ctx)
	defer decide(nil)
	done := make(chan struct{})
	defer close(done)
	system := x.World.System(step.System)
	log := func(p providers.Progress) {
		if p.Text != "" || p.Condition == nil {
			x.emit(Event{Kind: StepProgress, Step: step, Text: p.Text})
		}
		if p.Condition == nil {
			return
		}
		select {
		case x.results <- outcome{step: step.ID, report: p.Condition}:
		case <-done:
			return
		}
		if ends(step, *p.Condition) {
			decide(&waitOver{*p.Condition})
		}
	}
	var result providers.Result
	err = providers.Contain(func() (err error) {
		result, err = system.Provider.Do(ctx, w, log)
		return err
	})
	var over *waitOver
	var panicked *providers.PanicError
	if errors.As(context.Cause(ctx), &over) && err != nil && !errors.As(err, &panicked) {
		return over.decided(w.Expect)
	}
	f := failureOf(ctx, step, err)
	if f != nil {
		f.Cut()
	}
	return result, f
}

// failureOf gives every error of a step the form of a Failure.
func failureOf(ctx context.Context, step planner.Step, err error) *providers.Problem {
	if err == nil {
		return nil
	}
	var f *providers.Problem
	var panicked *providers.PanicError
	switch {
	case errors.As(err, &panicked): // whatever else has ended
		return &providers.Problem{Outcome: providers.Failed, Code: "panic", Next: providers.Vmctl("plan"), Err: panicked}
	case errors.As(err, &f) && errors.Is(ctx.Err(), context.Canceled):
		return &providers.Problem{Outcome: f.Outcome, Code: interruptedCode, Seen: append(slices.Clone(f.Seen), f.Error()), Next: f.Next, Err: errInterrupted}
	case f != nil:
		return f
	case errors.Is(ctx.Err(), context.Canceled):
		return &providers.Problem{Outcome: providers.Failed, Code: interruptedCode, Err: errInterrupted}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &providers.Problem{
			Outcome: providers.Timeout, Code: "deadline",
			Err: fmt.Errorf("not done within %s: %w", step.Timeout, err),
		}
	}
	return &providers.Problem{Outcome: providers.Failed, Code: "internal", Err: err}
}

func (x *execution) entry(kind state.EntryKind, i int) state.Entry {
	step := x.Plan.Steps[i]
	e := state.Entry{
		Run: x.ID, At: x.Now().UTC(), Kind: kind, Step: i, Op: step.Op, Address: step.Address,
		ID: string(step.Object), Name: step.Name,
	}
	if kind == state.Begin {
		e.Leaves = step.Leaves
		switch x.Plan.Changes[step.Change].Action {
		case providers.Destroy:
			e.How = cmp.Or(x.deletion(i), state.Destroying)
		case providers.Forget:
			e.How = state.LettingGo
		case providers.Create, providers.Update, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Stop,
			providers.Adopt, providers.Import, providers.Release, providers.Recover, providers.NoOp:
			e.How = x.deletion(i)
		}
	}
	return e
}

// deletion returns how a step deletes its object: state.Deleting, state.Replacing, or "" if it does
// not.
func (x *execution) deletion(i int) string {
	step := x.Plan.Steps[i]
	action := x.Plan.Changes[step.Change].Action
	switch {
	case step.Phase == providers.PhaseRemove && action == providers.Destroy:
		return state.Deleting
	case step.Phase == providers.PhaseRemove && action == providers.ReplaceIt:
		return state.Replacing
	default:
		return ""
	}
}
