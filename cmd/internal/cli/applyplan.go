package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// work is a plan with its round and its world.
type work struct {
	round
	plan  *planner.Plan
	world *planner.World
}

// applyPlan carries out a plan and shows its summary; after the last round also the outputs.
// It returns the next commands and the summary.
func (a *app) applyPlan(ctx context.Context, p *project, m mission, w work) (next []string, summary executor.Summary, err error) {
	run, err := newID(a.env.Rand)
	if err != nil {
		return nil, summary, err
	}
	moves := w.plan.Moves(w.moves)
	for i := range moves {
		moves[i].Run = run
	}
	if err := w.journal.Append(ctx, moves...); err != nil {
		return nil, summary, err
	}
	if len(w.plan.Steps) > 0 {
		if err := p.folder.SetDataDirID(p.owner.DataDirID); err != nil {
			return nil, summary, err
		}
	}
	writes := len(w.plan.Steps) > 0 || slices.ContainsFunc(w.plan.Changes, func(c planner.Change) bool { return c.Behind })
	if writes && p.keyErr == nil {
		if p.key, err = p.folder.SaveDigestKey(p.key); err != nil {
			return nil, summary, err
		}
	}
	if m.command == "apply" && len(w.plan.Steps) > 0 {
		if err := errors.Join(p.noteFolder(), p.folder.Reserve()); err != nil {
			return nil, summary, err
		}
	}
	if m.apply.timeout > 0 {
		limitSteps(w.plan, m.apply.timeout)
	}
	me, err := a.self("vmctl " + m.command)
	if err != nil {
		return nil, summary, err
	}
	if m.acts != nil && len(w.plan.Steps) > 0 {
		if err := m.acts.begin(ctx, w.journal, a.env.Now()); err != nil {
			return nil, summary, err
		}
	}
	defer a.mutating(mutatingCommand{command: m.command, plan: a.commandLine("plan", m.plan)})()
	watch, stop := a.watch(ctx, a.ownFlags(m.plan))
	summary, err = executor.Apply(ctx, executor.Run{
		Plan: w.plan, World: w.world, Journal: w.journal, Resolve: a.resolver(p.config), ID: run,
		DigestKey: p.key, Conditions: p.config.Conditions,
		Gate: gate{
			folder: p.busy(), me: me, addresses: p.visitorAddresses(w.journal.Snapshot()), orphans: p.orphanJobs,
			closed: &closedVMs{all: map[spec.Address]*closedVM{}},
		},
		Parallelism: m.apply.parallelism, KeepGoing: m.apply.keepGoing, KeepLogs: m.apply.keepLogs, Now: a.env.Now,
		Watch: func(e executor.Event) {
			e.Failure, e.Step = a.advised(e.Failure, m), w.numberedStep(e.Step)
			watch(e)
		},
	})
	stop()
	err = errors.Join(err, a.acted(ctx, m, w, summary, err))
	summary = w.numberedSummary(a.advisedSummary(summary, m))
	next = slices.Clone(w.next)
	if m.enter != nil {
		next = append(next, m.enter(w)...)
	}
	if len(w.plan.Steps) > 0 || a.global.json || w.later {
		a.summary(p, m, w, ended{summary, next, errors.Is(context.Cause(ctx), errTimeout)})
	}
	if m.ended != nil {
		m.ended(summary)
	}
	last := len(w.plan.Deferred) == 0 && summary.OK() && err == nil
	if m.after != nil && last {
		m.after()
	}
	if m.outputs && last {
		a.warnChecks(p, w.journal.Snapshot())
	}
	if m.outputs && last && !a.global.json {
		a.showOutputs(p, w.journal.Snapshot())
	}
	return next, summary, errors.Join(err, a.outcome(ctx, m, summary))
}

// limitSteps gives no step more time than the command has.
func limitSteps(plan *planner.Plan, limit time.Duration) {
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.Timeout > limit {
			s.Timeout = limit
		}
	}
}

func (a *app) resolver(c *spec.Config) func(spec.Address, map[spec.Address]cty.Value) (spec.Resource, error) {
	return func(addr spec.Address, values map[spec.Address]cty.Value) (spec.Resource, error) {
		r, diags := c.Resolve(addr, values)
		if diags.HasErrors() {
			return r, a.mistakes(diags, c.Files())
		}
		return r, nil
	}
}

// ended holds the summary of a plan, and the next commands if it went well.
type ended struct {
	executor.Summary
	next    []string
	expired bool // --timeout ended it
}

// summary tells how the steps ended.
func (a *app) summary(p *project, m mission, w work, e ended) {
	next := e.next
	switch {
	case !e.OK():
		next = a.goOn(m)
	case len(w.plan.Deferred) > 0: // it is not over
		next = nil
	}
	if !a.global.json {
		screen := a.screen()
		if !e.OK() {
			screen = a.errScreen()
		}
		view.Summary(screen, e.Summary, view.SummaryOptions{
			Command: m.verb, Next: next, Deferred: w.plan.Deferred, Later: w.later, Before: w.before, Expired: e.expired,
			Skipped: w.plan.Summary.Skipped, Own: a.ownFlags(m.plan),
		})
		return
	}
	var outputs map[string]view.OutputDocument
	var checks []view.CheckEntry
	if m.outputs {
		all := outputsOf(p, w.journal.Snapshot())
		a.warnOutputs(all)
		outputs = view.OutputsJSON(all)
		checks = view.CheckEntries(checksOf(p, w.journal.Snapshot()))
	}
	a.line(view.SummaryJSON(e.Summary, view.SummaryMore{Next: next, Outputs: outputs, Checks: checks, Deferred: w.plan.Deferred, Before: w.before, Own: a.ownFlags(m.plan)}))
}

// goOn returns the next commands after a failure or an interrupt.
func (a *app) goOn(m mission) []string {
	plan := "plan"
	if m.command == "destroy" {
		plan = "plan --destroy"
	}
	return []string{a.commandLine(plan, m.plan) + " shows what is left", a.commandLine(m.command, m.plan, m.names...) + " goes on from here"}
}

// outcome turns a summary into an error that people have read already.
func (a *app) outcome(ctx context.Context, m mission, s executor.Summary) error {
	if s.OK() {
		return nil
	}
	var errs []error
	for _, r := range s.Failed {
		errs = append(errs, stepError{err: fmt.Errorf("%s: %s: %w", r.Step.Address, r.Step.Op, r.Failure), own: a.ownFlags(m.plan)})
	}
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		errs = append(errs, newProblem(classExpired, "timeout", m.command+": "+errTimeout.Error(), a.goOn(m)...))
	case s.Interrupted:
		errs = append(errs, newProblem(classInterrupted, "interrupted", m.command+" was interrupted", a.goOn(m)...))
	case len(errs) == 0:
		errs = append(errs, newProblem(classFailed, "not_run", fmt.Sprintf("%s: %s did not run", m.command, counted(len(s.NotRun), "step")), a.goOn(m)...))
	}
	return told{err: errors.Join(errs...)}
}

// changesKeys reports whether a change gives a guest other keys, and nothing else.
func changesKeys(c planner.Change) bool {
	return c.Rekey != nil && len(c.Edits) == 0 && c.Mark == nil && (c.Action == providers.RestartIt || c.Action == providers.Update)
}

// changesRunState reports whether a change only starts, stops or restarts, and
// writes down how vmctl treats the object.
func changesRunState(c planner.Change) bool {
	switch c.Action {
	case providers.Start, providers.Stop, providers.RestartIt:
		return !c.Alters()
	case providers.NoOp, providers.Adopt, providers.Update:
		return !c.Alters()
	case providers.Create, providers.Import, providers.ReplaceIt, providers.Destroy, providers.Forget, providers.Release, providers.Recover:
		return false
	default:
		panic("unknown action " + string(c.Action))
	}
}
