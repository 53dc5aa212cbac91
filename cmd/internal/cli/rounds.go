package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// round is one plan of a mission, with its inputs. The next round plans the resources that
// could not be read before this one was carried out.
type round struct {
	journal  state.Journal
	snapshot *state.Snapshot
	options  planner.Options
	moves    []state.Entry  // moves of records that the plan takes for done
	later    bool           // it is not the first
	woken    []spec.Address // what was off and held up a removal was started
	roused   bool           // only the start of these came before it
	next     []string       // the next commands at the end

	steps  int              // of the rounds before
	before executor.Summary // of the rounds before

	retained []spec.Address // of the rounds so far
}

// numbered returns a plan whose step numbers go on from the rounds before.
func (r round) numbered(plan *planner.Plan) *planner.Plan {
	if r.steps == 0 {
		return plan
	}
	on := *plan
	on.Steps = slices.Clone(plan.Steps)
	for i := range on.Steps {
		on.Steps[i] = r.numberedStep(on.Steps[i])
	}
	return &on
}

func (r round) numberedStep(s planner.Step) planner.Step {
	s.ID += r.steps
	s.After = slices.Clone(s.After)
	for i := range s.After {
		s.After[i] += r.steps
	}
	return s
}

// numberedSummary returns a summary with the step numbers of a numbered plan.
func (r round) numberedSummary(s executor.Summary) executor.Summary {
	for _, results := range []*[]executor.StepResult{&s.Done, &s.Failed, &s.Warned} {
		*results = slices.Clone(*results)
		for i := range *results {
			(*results)[i].Step = r.numberedStep((*results)[i].Step)
		}
	}
	s.NotRun = slices.Clone(s.NotRun)
	for i := range s.NotRun {
		s.NotRun[i] = r.numberedStep(s.NotRun[i])
	}
	return s
}

// isFirst reports whether nothing of what the user wants was carried out before this round: what was agreed to beforehand is about it.
func (r round) isFirst() bool { return !r.later || r.roused }

// rounds plans, asks and applies until a plan defers nothing. If that ends before its time, it tells which VMs a wake has left on.
func (a *app) rounds(ctx context.Context, p *project, m mission, r round) error {
	err := a.eachRound(ctx, p, m, &r)
	if err != nil {
		a.tellAwake(r)
	}
	return err
}

// eachRound carries out one round after the other.
func (a *app) eachRound(ctx context.Context, p *project, m mission, r *round) error {
	stop, limited := func() {}, false
	defer func() { stop() }()
	limit := func() { // the limit is for all rounds, from the first consent on
		if !limited {
			ctx, stop = m.limited(ctx)
			limited = true
		}
	}
	for {
		var err error
		if r.options.Busy, err = p.atWork(ctx, r.snapshot); err != nil {
			return err
		}
		r.options.Visitors = p.visitors
		plan, world, err := planner.Make(ctx, a.opener(p), p.config, r.snapshot, r.options)
		if err != nil {
			return a.cutShort(ctx, m, *r, err)
		}
		a.logObserved(ctx, world)
		if asleep := plan.Sleepers(); m.apply.wake && len(r.woken) == 0 && len(asleep) > 0 {
			worth, err := a.isWorthWaking(ctx, p, m, *r, asleep)
			if err != nil {
				return errors.Join(err, world.Close())
			}
			if worth {
				limit()
				if err := errors.Join(world.Close(), a.wake(ctx, p, m, r, asleep)); err != nil {
					return err
				}
				continue
			}
		}
		if err = a.agree(ctx, p, m, *r, plan); err != nil {
			err = errors.Join(err, a.refusedAction(ctx, m, *r, err))
		} else {
			limit()
			var done executor.Summary
			r.next, done, err = a.applyPlan(ctx, p, m, work{plan: plan, world: world, round: *r})
			r.retained = append(r.retained, plan.Retained()...)
			r.before, r.steps = r.before.Then(done), r.steps+len(plan.Steps)
		}
		if err := errors.Join(err, world.Close()); err != nil || len(plan.Deferred) == 0 {
			return errors.Join(err, a.retained(m, *r))
		}
		if len(plan.Steps) == 0 {
			return a.unreadable(m, plan)
		}
		r.options.Rest, r.snapshot, r.moves, r.later = plan.Deferred, r.journal.Snapshot(), nil, true
		r.roused = false
	}
}

// limited returns a context with the mission's own deadline, if it has one.
func (m mission) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if m.apply.timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, m.apply.timeout, errTimeout)
}

// agree shows a plan and asks for consent. It fails if the plan must not be carried out.
func (a *app) agree(ctx context.Context, p *project, m mission, r round, plan *planner.Plan) error {
	if !r.later || plan.Pending() {
		a.showPlan(p, m, r, plan)
	}
	if m.check != nil && r.isFirst() {
		if err := m.check(plan, r.snapshot); err != nil {
			return err
		}
	}
	if err := a.reached(m, r, plan); err != nil {
		return err
	}
	if plan.Forbidden() {
		return a.forbidden(m, r, plan)
	}
	if len(plan.Deferred) > 0 && m.file != "" && !m.unasked && (!a.env.Terminal.In || a.global.json) {
		return newProblem(classRefused, "deferred", m.command+" "+m.file+": nothing was started: what it comes to for "+deferredText(plan)+
			" can be said only after "+untilText(plan)+" is ready, and there is no terminal to ask on",
			a.commandLine(m.command, planFlags{kept: true}, append([]string{"--auto-approve"}, m.names...)...)+" does not ask")
	}
	if len(plan.Steps) == 0 || m.apply.approved && !r.later || m.unasked {
		return nil
	}
	return a.consent(ctx, m, r, plan)
}

// unreadable returns the error for deferred resources that cannot be read although no step is
// left to wait for.
func (a *app) unreadable(m mission, plan *planner.Plan) error {
	return newProblem(classRefused, "deferred", m.command+": "+deferredText(plan)+" could not be read: "+untilText(plan)+" is not ready",
		a.commandLine("plan", m.plan)+" says more")
}

// cutShort returns err, or an error that says that an interrupt came between two rounds.
func (a *app) cutShort(ctx context.Context, m mission, r round, err error) error {
	if ctx.Err() == nil || !r.later || errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	return newProblem(classInterrupted, "interrupted", m.command+" was interrupted before the rest was read: "+
		strings.Join(view.Addresses(waiting(r.options.Rest)), ", "), a.goOn(m)...)
}

func waiting(all []planner.Deferred) []spec.Address {
	var addrs []spec.Address
	for _, d := range all {
		addrs = append(addrs, d.Address)
	}
	return addrs
}

// deferredText names the resources that a plan defers. untilText names the VMs that they wait
// for.
func deferredText(plan *planner.Plan) string {
	return strings.Join(view.Addresses(waiting(plan.Deferred)), ", ")
}

func untilText(plan *planner.Plan) string {
	var vms []spec.Address
	for _, d := range plan.Deferred {
		if !slices.Contains(vms, d.Until) {
			vms = append(vms, d.Until)
		}
	}
	return strings.Join(view.Addresses(vms), ", ")
}

// retained returns the error for objects that are to be destroyed and stay, because others use them. The plan has
// named the users; the rest was carried out.
func (a *app) retained(m mission, r round) error {
	if len(r.retained) == 0 {
		return nil
	}
	return newProblem(classRefused, "retained", m.command+": retained, because others use it: "+strings.Join(view.Addresses(r.retained), ", "),
		a.commandLine(m.command, m.plan, m.names...)+" removes it once they are gone")
}
