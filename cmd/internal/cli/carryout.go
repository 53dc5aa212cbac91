package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// mission is a plan that is made and carried out under the run lock.
type mission struct {
	command string   // "apply"
	names   []string // its arguments
	verb    string   // "Apply"
	title   string
	idle    func(*planner.Plan) string // what to say when there is nothing to do; nil: that all is as wanted
	plan    planFlags
	apply   applyFlags
	destroy bool
	options func(*state.Snapshot) (planner.Options, error)
	// check says why the plan, made on a state, must not be carried out. nil: it may.
	check func(*planner.Plan, *state.Snapshot) error
	// named reports whether the user named this change by the command itself, so
	// that nothing is left to ask. nil: no change is.
	named   func(planner.Change) bool
	timeout time.Duration       // of all of it; 0: none but the steps' own
	enter   func(work) []string // what to type after it went well; may be nil
	after   func()              // may be nil
	outputs bool                // shown at the end
}

// idles is what to say of a plan that does nothing.
func (m mission) idles(plan *planner.Plan) string {
	if m.idle == nil {
		return ""
	}
	return m.idle(plan)
}

// errTimeout ends a mission whose own deadline has passed.
var errTimeout = errors.New("the time that --timeout gives is up")

// carryOut takes the run lock, plans, asks, applies and tells how it went.
func (a *app) carryOut(ctx context.Context, p *project, m mission) (err error) {
	a.loosen() // whoever reads this may sleep, and does not hold up what holds the lock
	journal, err := p.store.Open(ctx, state.Owner{
		Command: "vmctl " + m.command, Wait: m.apply.wait(p.config.Settings),
		Waiting: func(h state.Holder) { a.waiting(h, m.apply.wait(p.config.Settings)) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	a.log().Info("run lock taken", slog.String("dir", p.dir))
	if err := p.busy().Tidy(ctx); err != nil {
		return err
	}
	snapshot := journal.Snapshot()
	a.notes(snapshot)
	moves := planner.Moves(p.config, snapshot)
	snapshot = snapshot.With(moves...)
	o, err := m.options(snapshot)
	if err != nil {
		return err
	}
	o.Destroy = m.destroy
	if o.Busy, err = p.atWork(ctx, snapshot); err != nil {
		return err
	}
	plan, world, err := planner.Make(ctx, a.opener(p), p.config, snapshot, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	a.typedBlocks(plan, m)
	a.showPlan(p, m, plan)
	if m.check != nil {
		if err := m.check(plan, snapshot); err != nil {
			return err
		}
	}
	if plan.Forbidden() {
		return a.forbidden(m, plan)
	}
	if len(plan.Steps) > 0 {
		if err := a.consent(ctx, m, plan); err != nil {
			return err
		}
	}
	return a.applyPlan(ctx, p, m, work{plan: plan, world: world, journal: journal, moves: scopedMoves(plan, moves)})
}

func (a *app) waiting(h state.Holder, limit time.Duration) {
	view.Note(a.errScreen(), fmt.Sprintf("Waiting for at most %s: %s.", view.Limit(limit), view.HolderText(h)))
}

func (a *app) showPlan(p *project, m mission, plan *planner.Plan) {
	if a.global.json {
		a.line(view.PlanEvent{FormatVersion: view.FormatVersion, Type: "plan", Plan: view.PlanJSON(plan)})
		return
	}
	view.Plan(a.screen(), plan, view.PlanOptions{
		Title: m.title, Verbose: m.plan.verbose, Idle: m.idles(plan), Providers: p.config.Providers,
		Offer: view.Offer{Running: true, Apply: a.offer(m, plan)},
	})
}

// forbidden says why nothing was started.
func (a *app) forbidden(m mission, plan *planner.Plan) error {
	s := plan.Summary
	e := newProblem(classRefused, "blocked", fmt.Sprintf("%s: nothing was started: %s", m.command, view.Obstacles(s)))
	e.shown = true
	for _, c := range plan.Changes {
		if c.Blocked == nil {
			continue
		}
		e.Seen = append(e.Seen, c.Address.String()+": "+c.Blocked.Reason)
		e.Next = append(e.Next, c.Blocked.Next...)
	}
	if len(plan.Steps) > 0 {
		e.Next = append(e.Next, "to carry out the rest: "+a.offer(m, plan))
	}
	return e
}

// work is a plan with all that carrying it out needs.
type work struct {
	plan    *planner.Plan
	world   *planner.World
	journal state.Journal
	moves   []state.Entry // of records, on which the plan rests
}

func (a *app) applyPlan(ctx context.Context, p *project, m mission, w work) error {
	run, err := newID(a.env.Rand)
	if err != nil {
		return err
	}
	for i := range w.moves {
		w.moves[i].Run = run
	}
	if err := w.journal.Append(ctx, w.moves...); err != nil {
		return err
	}
	if m.timeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, m.timeout, errTimeout)
		defer cancel()
		ctx = limited
		limitSteps(w.plan, m.timeout)
	}
	me, err := a.self("vmctl " + m.command)
	if err != nil {
		return err
	}
	defer a.changing(parting{command: m.command, plan: a.commandLine("plan", m.plan)})()
	watch, stop := a.watch(ctx)
	summary, err := executor.Apply(ctx, executor.Run{
		Plan: w.plan, World: w.world, Journal: w.journal, Resolve: a.resolver(p.config), ID: run,
		Gate:        gate{folder: p.busy(), me: me, doors: p.doors(w.journal.Snapshot())},
		Parallelism: m.apply.parallelism, KeepGoing: m.apply.keepGoing, Now: a.env.Now,
		Watch: func(e executor.Event) {
			e.Failure = a.advised(e.Failure, m)
			watch(e)
		},
	})
	stop()
	summary = a.advisedSummary(summary, m)
	if len(w.plan.Steps) > 0 || a.global.json {
		a.summary(p, m, w, summary)
	}
	if m.after != nil && summary.OK() && err == nil {
		m.after()
	}
	if m.outputs && summary.OK() && err == nil && !a.global.json {
		a.showOutputs(p, w.journal.Snapshot())
	}
	return errors.Join(err, a.outcome(ctx, m, summary))
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

// summary tells how the steps ended.
func (a *app) summary(p *project, m mission, w work, s executor.Summary) {
	var next []string
	switch {
	case !s.OK():
		next = a.goOn(m)
	case m.enter != nil:
		next = append(next, m.enter(w)...)
	}
	if !a.global.json {
		screen := a.screen()
		if !s.OK() {
			screen = a.errScreen()
		}
		view.Summary(screen, s, view.SummaryOptions{Command: m.verb, Next: next})
		return
	}
	var outputs map[string]view.OutputDocument
	if m.outputs {
		all, diags := p.config.Outputs(values(w.journal.Snapshot()))
		a.warn(diags, p.config.Files())
		outputs = view.OutputsJSON(all)
	}
	a.line(view.SummaryJSON(s, next, outputs))
}

// goOn says what to type after something was not done.
func (a *app) goOn(m mission) []string {
	return []string{a.commandLine("plan", m.plan) + " shows what is left", a.commandLine(m.command, m.plan, m.names...) + " goes on from here"}
}

// outcome turns a summary into an error that people have read already.
func (a *app) outcome(ctx context.Context, m mission, s executor.Summary) error {
	if s.OK() {
		return nil
	}
	var errs []error
	for _, r := range s.Failed {
		errs = append(errs, fmt.Errorf("%s: %s: %w", r.Step.Address, r.Step.Op, r.Failure))
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

// changesRunState reports whether a change only starts, stops or restarts, and
// writes down how vmctl treats the object.
func changesRunState(c planner.Change) bool {
	switch c.Action {
	case providers.Start, providers.Stop, providers.RestartIt:
		return len(c.Edits) == 0
	case providers.NoOp, providers.Adopt, providers.Update:
		return len(c.Edits) == 0
	case providers.Create, providers.Import, providers.ReplaceIt, providers.Destroy, providers.Forget, providers.Release, providers.Recover:
		return false
	default:
		panic("unknown action " + string(c.Action))
	}
}
