package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
)

// turnTick is the time between two looks at the jobs ahead.
const turnTick = 500 * time.Millisecond

// turn is a worker that waits until its job may begin.
type turn struct {
	store     Store
	processes Processes
	id        ID
	me        process.Identity
	now       func() time.Time
	ready     *func(error) // as of Worker; it is told once
}

// await returns once fewer jobs of the block than may run at once are ahead. A job ahead that has ended never counts
// again, and none joins them: they were noted under one lock when the record was made. An ended ctx is the request to
// end the job. The error says why the job does not begin.
func (t turn) await(ctx context.Context) error {
	own := context.WithoutCancel(ctx)
	r, err := t.store.Read(t.id)
	if err != nil || r.MaxParallel == 0 || r.Status != Queued {
		return err // whoever begins it next sees its status
	}
	for behind := r.Behind; ; {
		var reason string
		if behind, reason = t.ahead(own, behind, r); reason == "" {
			return nil
		}
		waits := func(r *Record) error { return Queue(r, t.me, reason) }
		if ctx.Err() != nil {
			waits = func(r *Record) error { return Ask(r, Cancel{At: t.now(), By: "a signal to its worker"}) }
		}
		now, err := t.store.Update(own, t.id, waits)
		switch {
		case now.Status == Cancelled:
			return ErrCancelled
		case err != nil:
			return err
		}
		(*t.ready)(nil)
		*t.ready = func(error) {}
		_ = clock.Sleep(ctx, turnTick) //nolint:errcheck // the next round asks ctx
	}
}

// ahead returns the jobs ahead that may not have ended, and why this one waits; "": it is its turn. It reads no more of
// them than it takes to know.
func (t turn) ahead(ctx context.Context, behind []ID, r Record) (left []ID, reason string) {
	observer, doubt := Observer{Processes: t.processes, Now: t.now()}, ""
	for i, id := range behind {
		other, err := t.store.Read(id)
		var none *NotFoundError
		switch {
		case errors.As(err, &none):
			continue
		case err != nil:
			doubt = "; " + err.Error()
		case observer.Derive(ctx, other).Status.IsTerminal():
			continue
		}
		if left = append(left, id); len(left) >= r.MaxParallel {
			reason = fmt.Sprintf("it waits for its turn: of %s at most %d run at once%s", groupOf(r.Block), r.MaxParallel, doubt)
			return append(left, behind[i+1:]...), reason
		}
	}
	return left, ""
}

// groupOf returns the address of a block without its key: the jobs of all keys take turns.
func groupOf(block string) string {
	group, _, _ := strings.Cut(block, "[")
	return group
}

// Queue records that a worker waits for the turn of its job.
func Queue(r *Record, worker process.Identity, reason string) error {
	if !waitsFor(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "queue"}
	}
	if r.Reason == reason && r.Worker != nil {
		return errUnchanged
	}
	r.Worker, r.Reason = &worker, reason
	return nil
}

// waitsFor reports whether a job is queued, and no worker but this one has it.
func waitsFor(r *Record, worker process.Identity) bool {
	return r.Status == Queued && (r.Worker == nil || owns(r, worker))
}
