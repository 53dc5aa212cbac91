package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// acting records a command as the last action of each container that it names. One process at a time holds the run lock, so
// that an action never overwrites a newer one.
type acting struct {
	command string
	all     []spec.Address
	began   time.Time // zero: it has not begun
}

// begin records that the action is about to be carried out.
func (x *acting) begin(ctx context.Context, journal state.Journal, now time.Time) error {
	if !x.began.IsZero() {
		return nil
	}
	x.began = now
	return x.record(ctx, journal, func(spec.Address) state.Action { return state.Action{Command: x.command, Began: now} })
}

// end records the outcome of the action.
func (x *acting) end(ctx context.Context, journal state.Journal, now time.Time, failed func(spec.Address) string) error {
	if x.began.IsZero() { // there was nothing to do
		x.began = now
	}
	return x.record(ctx, journal, func(a spec.Address) state.Action {
		return state.Action{Command: x.command, Began: x.began, Ended: now, Failed: providers.Cut(failed(a))}
	})
}

func (x *acting) record(ctx context.Context, journal state.Journal, of func(spec.Address) state.Action) error {
	var entries []state.Entry
	records := journal.Snapshot().Records
	for _, addr := range x.all {
		if r, recorded := records[addr]; recorded {
			last := of(addr)
			r.LastAction = &last
			entries = append(entries, state.Entry{Kind: state.Note, Op: opActed, Address: addr, Put: &r})
		}
	}
	if len(entries) == 0 {
		return nil
	}
	if err := journal.Append(ctx, entries...); err != nil {
		return fmt.Errorf("record the last action: %w", err)
	}
	return nil
}

// opActed is the Op of the journal entries that record an action.
const opActed = "acted"

// acted records the outcome of a round of a mission that acts on containers. Where more rounds follow, only a failure is one.
func (a *app) acted(ctx context.Context, m mission, w work, s executor.Summary, err error) error {
	if m.acts == nil || err == nil && s.OK() && len(w.plan.Deferred) > 0 {
		return nil
	}
	return m.acts.end(ctx, w.journal, a.env.Now(), func(addr spec.Address) string {
		of := func(r executor.StepResult) bool { return r.Step.Address == addr }
		switch i := slices.IndexFunc(s.Failed, of); {
		case i >= 0:
			return s.Failed[i].Failure.Error()
		case err != nil:
			return err.Error()
		case !slices.ContainsFunc(s.NotRun, func(step planner.Step) bool { return step.Address == addr }):
			return ""
		case s.Interrupted:
			return "it was interrupted"
		default:
			return "it was not carried out: another step failed"
		}
	})
}

// refusedAction records that a mission was refused before it did anything. Without the consent of the user there was no action.
func (a *app) refusedAction(ctx context.Context, m mission, r round, err error) error {
	var p *problem
	if m.acts == nil || r.later || !errors.As(err, &p) || p.class != classFailed && p.class != classRefused {
		return nil
	}
	return m.acts.end(ctx, r.journal, a.env.Now(), func(spec.Address) string { return p.Message })
}

// mayHaveRestarted reports whether a restart would repeat one whose end was not recorded.
func mayHaveRestarted(c planner.Change) bool {
	return c.Action == providers.RestartIt && c.Record != nil && c.Record.LastAction != nil &&
		c.Record.LastAction.Command == restartContainer && c.Record.LastAction.Ended.IsZero()
}

// restartContainer is the one action that is not safe to repeat.
const restartContainer = "container restart"

// warnRestarts warns about containers that an earlier restart may have restarted.
func (a *app) warnRestarts(plan *planner.Plan) {
	for _, c := range plan.Changes {
		if mayHaveRestarted(c) {
			view.Warning(a.errScreen(), fmt.Sprintf("a restart of %s began at %s, and its end was not recorded: it may have been carried out",
				c.Address, c.Record.LastAction.Began.UTC().Format(time.RFC3339)))
		}
	}
}
