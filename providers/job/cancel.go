package job

import (
	"context"
	"errors"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
)

// CancelOutcome names the result of a cancel.
type CancelOutcome string

// The outcomes of a cancel, as rows J19 to J23 name them.
const (
	Signaled        CancelOutcome = "signaled"
	AlreadyDead     CancelOutcome = "already_dead"
	AlreadyTerminal CancelOutcome = "already_terminal"
	CancelPending   CancelOutcome = "cancel_pending"
	BadState        CancelOutcome = "bad_state"
	SignalFailed    CancelOutcome = "signal_failed"
	CancelFailed    CancelOutcome = "cancel_failed"
	StalePID        CancelOutcome = "stale_pid"
	Unverifiable    CancelOutcome = "unverifiable"
	NoPIDInfo       CancelOutcome = "no_pid_info"
)

// Canceller cancels jobs.
type Canceller struct {
	Store     Store
	Processes Processes
	By        string
	Force     bool // also a job that is Unforced is killed after the grace
	Now       func() time.Time
	// Warn is told why the intent to end a job that runs could not be recorded; nil: nobody is.
	Warn func(error)
}

// Ask records that the end of a job is wanted.
func (c Canceller) Ask(ctx context.Context, id ID) (Record, error) {
	return c.Store.Update(ctx, id, func(r *Record) error { return Ask(r, Cancel{At: c.Now(), By: c.By, Force: c.Force}) })
}

// Cancel records the intent, requests the end of the job, and waits for its record to end. A job that
// runs is ended even if the intent cannot be recorded. The error explains an outcome that is a failure.
func (c Canceller) Cancel(ctx context.Context, id ID) (Record, CancelOutcome, error) {
	before, err := c.Store.Read(id)
	if err != nil {
		return before, BadState, err
	}
	if before.Status.IsTerminal() {
		return before, AlreadyTerminal, nil
	}
	r, err := c.Ask(ctx, id)
	var state *StateError
	switch {
	case errors.As(err, &state):
		return r, AlreadyTerminal, nil
	case err != nil && (before.Worker == nil || before.Status == Queued):
		return before, CancelFailed, err
	case err != nil:
		r = before
		if c.Warn != nil {
			c.Warn(err)
		}
	case r.Status == Cancelled:
		return r, CancelPending, nil
	}
	if r.Worker == nil || !isWhole(*r.Worker) {
		return r, NoPIDInfo, errors.New("the record does not say which process runs it")
	}
	return c.end(ctx, r)
}

// isWhole reports whether an identity has all by which its process is told from others.
func isWhole(id process.Identity) bool {
	return id.PID > 1 && id.StartTime != 0 && id.BootID != "" && id.Argv0 != ""
}

// end requests the end of a job that a worker has.
func (c Canceller) end(ctx context.Context, r Record) (Record, CancelOutcome, error) {
	err := c.Processes.Request(*r.Worker)
	var refused *process.RefusedError
	switch {
	case err == nil:
		return c.await(ctx, r)
	case !errors.As(err, &refused):
		return r, SignalFailed, err
	case refused.Verdict == process.Unknown:
		return r, Unverifiable, err
	}
	if r, err = c.Store.Read(r.ID); err != nil || r.Status.IsTerminal() {
		return r, AlreadyDead, err
	}
	if r.Inside != "" {
		return r, NoPIDInfo, errors.New("its worker is gone, and its processes are in " + r.Inside)
	}
	return c.endOrphan(ctx, r)
}

// endOrphan ends what a job started whose worker is gone, and then its record.
func (c Canceller) endOrphan(ctx context.Context, r Record) (Record, CancelOutcome, error) {
	all, outcome, refused := c.orphans(ctx, r)
	if outcome == Unverifiable || outcome == NoPIDInfo {
		return r, outcome, refused
	}
	if err := c.endAll(ctx, r, all); err != nil {
		return r, SignalFailed, err
	}
	end := c.Store.endCopy(ctx, r)
	closed, err := c.Store.Update(ctx, r.ID, func(r *Record) error {
		end.into(r)
		if r.Cancel == nil { // it could not be recorded before
			r.Cancel = &Cancel{At: c.Now(), By: c.By, Force: c.Force}
		}
		return Close(r, "its worker was gone", c.Now())
	})
	if err != nil {
		return closed, CancelFailed, err
	}
	return closed, outcome, refused
}

// orphans returns the processes of a job whose worker is gone. The error goes with an outcome that
// is a failure.
func (c Canceller) orphans(ctx context.Context, r Record) ([]process.Identity, CancelOutcome, error) {
	all, err := c.Processes.WithVariable(ctx, r.marker())
	unsupported := errors.Is(err, errors.ErrUnsupported)
	switch {
	case err != nil && !unsupported:
		return nil, Unverifiable, err
	case r.Process == nil && unsupported:
		return nil, NoPIDInfo, errors.New("its worker is gone, and the record does not say which process it started")
	case r.Process == nil && len(all) == 0:
		return nil, AlreadyDead, nil
	case r.Process == nil:
		return all, Signaled, nil
	}
	verdict, why := c.Processes.Verify(*r.Process)
	switch {
	case holds(all, *r.Process): // perhaps with another program by now
		return all, Signaled, nil
	case verdict == process.Unknown:
		return nil, Unverifiable, &process.RefusedError{Process: *r.Process, Verdict: verdict, Reason: why}
	case verdict == process.Match:
		return append(all, *r.Process), Signaled, nil
	case len(all) > 0:
		return all, Signaled, nil
	case verdict == process.Reused:
		return nil, StalePID, &process.RefusedError{Process: *r.Process, Verdict: verdict, Reason: why}
	default:
		return nil, AlreadyDead, nil
	}
}

// endAll requests processes to end, forces them after the grace, and then all that they started,
// until nothing is left.
func (c Canceller) endAll(ctx context.Context, r Record, all []process.Identity) error {
	if len(all) == 0 {
		return nil
	}
	grace, cancel := context.WithTimeout(ctx, time.Duration(r.Grace))
	asked := process.Each(all, c.Processes.Request)
	if asked == nil {
		_ = c.Processes.Wait(grace, all...) //nolint:errcheck // what is left is forced
	}
	cancel()
	if !mayKill(r) && !c.Force {
		return c.left(ctx, r)
	}
	var failed error
	for range sweeps {
		force, cancel := context.WithTimeout(ctx, forceWait)
		failed = process.Each(all, func(id process.Identity) error { _, err := c.Processes.Force(id); return err })
		if failed == nil { // else one of them may have replaced its program
			failed = c.Processes.Wait(force, all...)
		}
		cancel()
		left, err := c.Processes.WithVariable(ctx, r.marker())
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return failed
		case err != nil:
			return err
		case len(left) == 0:
			return nil
		}
		all = left
		clock.Pause(ctx, tick)
	}
	return errors.Join(errors.New("processes that it started do not end: "+process.Words(all)), failed)
}

// left returns an error while something of a job lives that was asked to end and may not be killed.
func (c Canceller) left(ctx context.Context, r Record) error {
	all, err := c.Processes.WithVariable(ctx, r.marker())
	if errors.Is(err, errors.ErrUnsupported) && r.Process != nil {
		if verdict, _ := c.Processes.Verify(*r.Process); verdict == process.Gone || verdict == process.Reused {
			return nil
		}
		all, err = []process.Identity{*r.Process}, nil
	}
	if err != nil || len(all) == 0 {
		return err
	}
	return &ResistsError{Reason: resistance(r) + ": " + process.Words(all)}
}

// ResistsError reports that a job runs on after it was asked to end, and is not killed.
type ResistsError struct{ Reason string }

// Error says so.
func (e *ResistsError) Error() string { return e.Reason }

// await waits until the worker has ended, and with it the job.
func (c Canceller) await(ctx context.Context, r Record) (Record, CancelOutcome, error) {
	most := time.Duration(r.Grace) + 3*forceWait
	if r.Containment == InCopy {
		most += lookLimit + copyLimit // its worker keeps what the job changed
	}
	limit, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	resists, waited := c.untilEnd(limit, r)
	now, err := c.Store.Read(r.ID)
	switch {
	case err != nil:
		return now, SignalFailed, err
	case resists != nil && !now.Status.IsTerminal():
		return now, SignalFailed, resists
	case now.Status.IsTerminal():
		return now, Signaled, nil
	case waited != nil:
		return now, SignalFailed, waited
	}
	return c.end(ctx, now) // the worker died of something else
}

// untilEnd waits for the end of the worker of a job; resists says why there is none to wait for.
func (c Canceller) untilEnd(ctx context.Context, r Record) (resists *ResistsError, waited error) {
	if mayKill(r) {
		return nil, c.Processes.Wait(ctx, *r.Worker)
	}
	for {
		look, cancel := context.WithTimeout(ctx, tick)
		waited = c.Processes.Wait(look, *r.Worker)
		cancel()
		if waited == nil || ctx.Err() != nil {
			return nil, waited
		}
		if now, err := c.Store.Read(r.ID); err == nil && now.Resists {
			return &ResistsError{Reason: now.Reason}, waited
		}
	}
}
