package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vmctl/internal/process"
)

// Processes tells about processes, and ends them.
type Processes interface {
	Verify(process.Identity) (process.Verdict, string)
	Request(process.Identity) error
	Force(process.Identity) ([]process.Identity, error)
	Wait(context.Context, ...process.Identity) error
}

var _ Processes = process.Host{}

// Window limits the time in which a job without a known process has to get one.
const Window = time.Hour

// Derived is the status that a record has by the evidence of now, and the reason where that is
// another than the recorded one or in doubt.
type Derived struct {
	Status Status
	Reason string
}

// Derive holds a record against the processes of this host. It writes nothing. A job is called
// stale only on proof that nothing of it lives, or if it never got a process within the window.
func Derive(r Record, p Processes, now time.Time) Derived {
	if r.Status.IsTerminal() {
		return Derived{Status: r.Status, Reason: r.Reason}
	}
	if r.Worker == nil {
		return neverIdentified(r, now, "no worker took it")
	}
	verdict, why := p.Verify(*r.Worker)
	switch verdict {
	case process.Match:
		return Derived{Status: r.Status}
	case process.Unknown:
		return Derived{Status: r.Status, Reason: "its worker cannot be examined: " + why}
	case process.Gone, process.Reused:
	default:
		panic("job: verdict " + verdict)
	}
	if r.Process == nil {
		return neverIdentified(r, now, "its worker is gone, and its process is not known")
	}
	verdict, why = p.Verify(*r.Process)
	switch verdict {
	case process.Match:
		return Derived{Status: r.Status, Reason: fmt.Sprintf("its worker is gone; process %d runs on", r.Process.PID)}
	case process.Unknown:
		return Derived{Status: r.Status, Reason: "its process cannot be examined: " + why}
	case process.Gone, process.Reused:
		return ended(r, "its worker and its process are gone: "+why)
	default:
		panic("job: verdict " + verdict)
	}
}

func neverIdentified(r Record, now time.Time, what string) Derived {
	if r.Created.IsZero() || r.Created.After(now) || now.Sub(r.Created) < Window {
		return Derived{Status: r.Status, Reason: what}
	}
	return ended(r, what+" within "+Window.String())
}

func ended(r Record, reason string) Derived {
	if r.Cancel != nil {
		return Derived{Status: Cancelled, Reason: reason}
	}
	return Derived{Status: Stale, Reason: reason}
}

// Reconcile writes what Derive found, if the record is still the one that it was found for.
func (s Store) Reconcile(ctx context.Context, r Record, p Processes, now time.Time) (Record, error) {
	d := Derive(r, p, now)
	if r.Status.IsTerminal() || !d.Status.IsTerminal() {
		return r, nil
	}
	return s.Commit(ctx, r.ID, r.Revision, func(r *Record) error { return Close(r, d.Reason, now) })
}

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
	Now       func() time.Time
}

// Cancel records the intent, requests the end of the job, and waits for its record to end. The error
// explains an outcome that is a failure.
func (c Canceller) Cancel(ctx context.Context, id ID) (Record, CancelOutcome, error) {
	before, err := c.Store.Read(id)
	if err != nil {
		return before, BadState, err
	}
	if before.Status.IsTerminal() {
		return before, AlreadyTerminal, nil
	}
	r, err := c.Store.Update(ctx, id, func(r *Record) error { return Ask(r, c.By, c.Now()) })
	var state *StateError
	switch {
	case errors.As(err, &state):
		return r, AlreadyTerminal, nil
	case err != nil:
		return r, CancelFailed, err
	case r.Status == Cancelled:
		return r, CancelPending, nil
	case r.Worker == nil:
		return r, NoPIDInfo, errors.New("the record does not say which process runs it")
	}
	return c.end(ctx, r)
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
	if r.Process == nil {
		return r, NoPIDInfo, errors.New("its worker is gone, and the record does not say which process it started")
	}
	return c.endOrphan(ctx, r)
}

// endOrphan ends the process of a job whose worker is gone.
func (c Canceller) endOrphan(ctx context.Context, r Record) (Record, CancelOutcome, error) {
	outcome := Signaled
	err := c.Processes.Request(*r.Process)
	var refused *process.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Verdict == process.Unknown:
		return r, Unverifiable, err
	case errors.As(err, &refused) && refused.Verdict == process.Reused:
		outcome = StalePID
	case errors.As(err, &refused):
		outcome = AlreadyDead
	case err != nil:
		return r, SignalFailed, err
	default:
		if err := c.gone(ctx, r); err != nil {
			return r, SignalFailed, err
		}
	}
	closed, failed := c.Store.Update(ctx, r.ID, func(r *Record) error { return Close(r, "its worker was gone", c.Now()) })
	if failed != nil {
		return closed, CancelFailed, failed
	}
	if outcome == StalePID {
		return closed, outcome, err
	}
	return closed, outcome, nil
}

func (c Canceller) gone(ctx context.Context, r Record) error {
	grace, cancel := context.WithTimeout(ctx, time.Duration(r.Grace))
	defer cancel()
	if c.Processes.Wait(grace, *r.Process) == nil {
		return nil
	}
	force, cancel := context.WithTimeout(ctx, forceWait)
	defer cancel()
	ended, err := c.Processes.Force(*r.Process)
	var refused *process.RefusedError
	if errors.As(err, &refused) && refused.Verdict != process.Unknown {
		return nil
	}
	return errors.Join(err, c.Processes.Wait(force, ended...))
}

// await waits until the worker has ended, and with it the job.
func (c Canceller) await(ctx context.Context, r Record) (Record, CancelOutcome, error) {
	limit, cancel := context.WithTimeout(ctx, time.Duration(r.Grace)+3*forceWait)
	defer cancel()
	waited := c.Processes.Wait(limit, *r.Worker)
	now, err := c.Store.Read(r.ID)
	switch {
	case err != nil:
		return now, SignalFailed, err
	case now.Status.IsTerminal():
		return now, Signaled, nil
	case waited != nil:
		return now, SignalFailed, waited
	}
	return c.end(ctx, now) // the worker died of something else
}
