package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// Gate keeps other commands out of a VM while a change takes it down (DESIGN.md, rule 8).
type Gate interface {
	// Close returns once nobody is inside the VM of c, or at once if c.Busy allows interrupting
	// the holders, and keeps everybody out until open is called. It waits as long as c.Busy says,
	// and passes the holders to waiting, again when they change. Its error is a
	// *providers.Problem, or that of an ended ctx.
	Close(ctx context.Context, c *planner.Change, waiting func([]state.Holder)) (open func() error, err error)
}

// takesDown reports whether a step takes a VM down, so that the gate has to close it first.
func (x *execution) takesDown(step int) bool {
	s := x.Plan.Steps[step]
	return x.Gate != nil && !s.Record && planner.TakesDown(s.Step)
}

// close begins to close the VM that a step takes down. The journal says that the step began only
// after that: a run that ends here has interrupted nothing.
func (x *execution) close(ctx context.Context, i int) {
	step := x.Plan.Steps[i]
	change := &x.Plan.Changes[step.Change]
	x.states[i] = closing
	x.closing++
	go func() {
		began, waits := x.Now(), false
		open, err := x.Gate.Close(ctx, change, func(inside []state.Holder) {
			if !waits {
				waits = true
				x.results <- outcome{step: i, gate: true, waits: true}
			}
			x.emit(Event{Kind: StepWaiting, Step: step, Deadline: change.Busy.Wait, Text: holderNames(inside)})
		})
		o := outcome{step: i, gate: true, waited: waits, open: open, elapsed: x.Now().Sub(began)}
		var f *providers.Problem
		if err != nil && (ctx.Err() == nil || errors.As(err, &f)) {
			o.failure = failureOf(ctx, step, err)
		}
		x.results <- o
	}()
}

// endClose records the outcome of closing a VM. If the VM is not closed and there is no failure, the
// wait was given up, and the step did not run.
func (x *execution) endClose(o outcome) {
	switch {
	case o.waits: // a waiting step does not count towards Parallelism
		x.closing--
		x.awaiting++
		return
	case o.waited:
		x.awaiting--
	default:
		x.closing--
	}
	x.states[o.step] = waiting
	step := x.Plan.Steps[o.step]
	switch {
	case o.open != nil:
		x.gates[step.Change] = o.open
	case o.failure != nil:
		x.states[o.step] = failed
		x.markFailed(step.Change)
		x.ends = append(x.ends, StepResult{Step: step, Failure: o.failure, Elapsed: o.elapsed})
	default:
		x.queue.push(o.step)
	}
}

// reopen lets other commands into the VMs of changes that have ended.
func (x *execution) reopen(ended func(change int) bool) {
	for change, open := range x.gates {
		if !ended(change) {
			continue
		}
		delete(x.gates, change)
		if err := open(); err != nil {
			x.reopenErrors = append(x.reopenErrors, fmt.Errorf("let others into %s again: %w", x.Plan.Changes[change].Address, err))
		}
	}
}

// isOver reports whether no step of a change runs or can still begin.
func (x *execution) isOver(change int) bool {
	for _, i := range x.steps[change] {
		switch x.states[i] {
		case running, closing:
			return false
		case waiting:
			if x.mayBegin(i) {
				return false
			}
		case ended, failed:
		}
	}
	return true
}

func holderNames(inside []state.Holder) string {
	var names []string
	for _, h := range inside {
		names = append(names, h.String())
	}
	return strings.Join(names, "; ")
}

// BusyFailure returns the failure of a step that holders keep from taking their VM down. After a
// wait for them, its outcome is Timeout.
func BusyFailure(c *planner.Change, inside []state.Holder) *providers.Problem {
	f := &providers.Problem{Outcome: providers.Unsafe, Code: "busy", Next: planner.BusyNext(c)}
	for _, h := range inside {
		f.Seen = append(f.Seen, h.String())
	}
	f.Err = fmt.Errorf("take %s down: somebody is at work in it, and it was left as it is", c.Address)
	if c.Busy.Wait > 0 {
		f.Outcome = providers.Timeout
		f.Err = fmt.Errorf("take %s down: somebody is at work in it still, after %s, and it was left as it is",
			c.Address, spec.FormatDuration(int64(c.Busy.Wait/time.Second)))
	}
	return f
}
