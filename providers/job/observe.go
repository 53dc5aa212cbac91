package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vmctl/internal/process"
	"vmctl/spec"
)

// Processes tells about processes, and ends them.
type Processes interface {
	Verify(process.Identity) (process.Verdict, string)
	WithVariable(context.Context, string) ([]process.Identity, error)
	Request(process.Identity) error
	Force(process.Identity) ([]process.Identity, error)
	Wait(context.Context, ...process.Identity) error
}

var _ Processes = process.Host{}

// Window limits the time in which a job without a known process has to get one, unless its record says another.
const Window = time.Hour

// Derived is the status that a record has by the evidence of now, and the reason where that is
// another than the recorded one or in doubt.
type Derived struct {
	Status Status
	Reason string
	Code   ErrorCode // NotLaunched, if nobody has written yet that it ended so; else ""
}

// Observer holds records against the processes of this host.
type Observer struct {
	Processes Processes
	Now       time.Time
}

// Derive holds a record against the processes of this host. It writes nothing. A job is called
// stale only on proof that nothing of it lives, or if no worker took it within the window.
func (o Observer) Derive(ctx context.Context, r Record) Derived {
	if r.Status.IsTerminal() {
		return Derived{Status: r.Status, Reason: r.Reason}
	}
	if r.Worker == nil {
		return o.unlaunched(ctx, r)
	}
	verdict, why := o.Processes.Verify(*r.Worker)
	switch verdict {
	case process.Match:
		return Derived{Status: r.Status, Reason: r.Reason}
	case process.Unknown:
		return Derived{Status: r.Status, Reason: "its worker cannot be examined: " + why}
	case process.Gone, process.Reused:
	default:
		panic("job: verdict " + verdict)
	}
	if r.Status == Queued {
		return ended(r, "its worker is gone ("+why+"), and had not begun it")
	}
	if r.Inside != "" {
		return Derived{Status: r.Status, Reason: "its worker is gone, and " + r.Inside + " has to be asked: vmctl job wait " + string(r.ID)}
	}
	if r.Process != nil {
		switch verdict, why := o.Processes.Verify(*r.Process); verdict {
		case process.Match:
			return Derived{Status: r.Status, Reason: fmt.Sprintf("its worker is gone; process %d runs on", r.Process.PID)}
		case process.Unknown:
			if all, err := o.Processes.WithVariable(ctx, r.marker()); err == nil && holds(all, *r.Process) {
				return Derived{Status: r.Status, Reason: fmt.Sprintf("its worker is gone; process %d runs on", r.Process.PID)}
			}
			return Derived{Status: r.Status, Reason: "its process cannot be examined: " + why}
		case process.Gone, process.Reused:
		default:
			panic("job: verdict " + verdict)
		}
	}
	return o.leftBehind(ctx, r, why)
}

// holds reports whether a process is among others, whatever program it runs.
func holds(all []process.Identity, id process.Identity) bool {
	return slices.ContainsFunc(all, func(other process.Identity) bool {
		return other.PID == id.PID && other.StartTime == id.StartTime && other.BootID == id.BootID
	})
}

// leftBehind derives the status of a job whose worker is gone, and its process as far as that is
// known: what it started may live.
func (o Observer) leftBehind(ctx context.Context, r Record, why string) Derived {
	left, err := o.Processes.WithVariable(ctx, r.marker())
	switch {
	case len(left) > 0:
		return Derived{Status: r.Status, Reason: fmt.Sprintf("its worker is gone; process %d of it runs on", left[0].PID)}
	case err == nil && r.Process == nil:
		return ended(r, "its worker is gone ("+why+"), and nothing that it started lives")
	case err == nil:
		return ended(r, "its worker and its process are gone ("+why+"), and nothing that they started lives")
	case !errors.Is(err, errors.ErrUnsupported):
		return Derived{Status: r.Status, Reason: "its worker is gone, and what it started cannot be examined: " + err.Error()}
	case r.Process == nil:
		return o.untaken(r)
	default:
		return ended(r, "its worker and its process are gone: "+why)
	}
}

// unlaunched derives the status of a job that no worker has. Once its launcher is gone, and no worker is under way, none
// takes it.
func (o Observer) unlaunched(ctx context.Context, r Record) Derived {
	if r.Status != Queued || r.Launcher == nil {
		return o.untaken(r)
	}
	verdict, why := o.Processes.Verify(*r.Launcher)
	if verdict != process.Gone && verdict != process.Reused {
		return o.untaken(r)
	}
	workers, err := o.Processes.WithVariable(ctx, r.workerMarker())
	switch {
	case len(workers) > 0:
		return Derived{Status: r.Status, Reason: fmt.Sprintf("process %d is about to take it", workers[0].PID)}
	case errors.Is(err, errors.ErrUnsupported):
		return o.untaken(r)
	case err != nil:
		if d := o.untaken(r); d.Status.IsTerminal() {
			return d
		}
		return Derived{Status: r.Status, Reason: "its launcher is gone, and whether it has a worker cannot be examined: " + err.Error()}
	default:
		return Derived{Status: Failed, Code: NotLaunched, Reason: "its launcher is gone (" + why + "), and no worker has taken it: it never ran"}
	}
}

// isRunOf reports whether a job counts as a run of a block: one that was not launched is none.
func (o Observer) isRunOf(ctx context.Context, r Record, a spec.Address) bool {
	return r.Block == a.String() && r.ErrorCode != NotLaunched && (r.Status != Queued || o.Derive(ctx, r).Code != NotLaunched)
}

// untaken derives the status of a job of which no process is known.
func (o Observer) untaken(r Record) Derived {
	what := "no worker took it"
	if r.Worker != nil {
		what = "its worker is gone, and its process is not known"
	}
	window := cmp.Or(time.Duration(r.Window), Window)
	if r.Created.IsZero() || r.Created.After(o.Now) || o.Now.Sub(r.Created) < window {
		return Derived{Status: r.Status, Reason: what}
	}
	return ended(r, what+" within "+window.String())
}

func ended(r Record, reason string) Derived {
	if r.Cancel != nil {
		return Derived{Status: Cancelled, Reason: reason}
	}
	return Derived{Status: Stale, Reason: reason}
}

// IsOrphan reports whether a job may still run although its worker is gone, or cannot be examined.
func (o Observer) IsOrphan(ctx context.Context, r Record) bool {
	if r.Status.IsTerminal() || r.Status == Queued || r.Worker == nil {
		return false
	}
	if verdict, _ := o.Processes.Verify(*r.Worker); verdict == process.Match {
		return false
	}
	return !o.Derive(ctx, r).Status.IsTerminal()
}

// Look derives the status of a job that the store has. A worker that ends writes that first, and is gone then: a record that was
// read before says that the job is stale, and one that is read after the look at its processes says how it ended.
func (s Store) Look(ctx context.Context, r Record, o Observer) (Record, Derived) {
	for {
		d := o.Derive(ctx, r)
		if r.Status.IsTerminal() || !d.Status.IsTerminal() {
			return r, d
		}
		now, err := s.Read(r.ID)
		if err != nil || now.Revision == r.Revision {
			return r, d
		}
		r = now
	}
}

// NeedsWorker reports whether a job in a VM has lost its worker: another one has to take it up.
func (o Observer) NeedsWorker(r Record) bool {
	if r.Status.IsTerminal() || r.Status == Queued || r.Worker == nil || r.Inside == "" {
		return false
	}
	verdict, _ := o.Processes.Verify(*r.Worker)
	return verdict == process.Gone || verdict == process.Reused
}

// Reconcile writes what Derive finds, if the record is still the one that it was found for, and keeps before what the job
// changed in its copy.
func (s Store) Reconcile(ctx context.Context, r Record, o Observer) (Record, error) {
	d := o.Derive(ctx, r)
	if r.Status.IsTerminal() || !d.Status.IsTerminal() {
		return r, nil
	}
	end := s.endCopy(ctx, r)
	if err := end.later(ctx); err != nil {
		return r, err
	}
	return s.Commit(ctx, r.ID, r.Revision, func(r *Record) error {
		end.into(r)
		if d.Code == NotLaunched {
			return Abandon(r, d.Code, d.Reason, o.Now)
		}
		return Close(r, d.Reason, o.Now)
	})
}

// ReconcileAll reconciles all records, and returns those that it ended. A record that cannot be read
// or written stays as it is, and has an error in failed; one that somebody wrote meanwhile is right
// already. Of jobs that had ended before it keeps and removes what was left then: see LeftCopyError.
func (s Store) ReconcileAll(ctx context.Context, o Observer) (closed []Record, failed []error, err error) {
	all, failed, err := s.List()
	for _, r := range all {
		after, err := s.Reconcile(ctx, r, o)
		if err == nil && r.Status.IsTerminal() {
			_, err = s.clean(ctx, r, o)
		}
		var (
			conflict *ConflictError
			none     *NotFoundError
		)
		switch {
		case errors.As(err, &conflict), errors.As(err, &none):
		case err != nil:
			failed = append(failed, err)
		case after.Revision != r.Revision:
			closed = append(closed, after)
		}
	}
	return closed, failed, err
}
