package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
)

// retry starts the command of an agent again while its provider refuses it for its rate.
type retry struct {
	worker *Worker
	record Record
	me     process.Identity
	prompt *os.File  // open: its name is gone; nil: nothing is started again
	begun  time.Time // of the first run
}

// retryOf is called before the command starts, which takes the prompt.
func (w *Worker) retryOf(r Record, me process.Identity) *retry {
	t := &retry{worker: w, record: r, me: me}
	if AgentOf(r.Agent) != nil && len(w.Backoff) > 0 {
		t.prompt, _ = os.Open(w.Store.Path(w.ID, promptFile)) //nolint:errcheck // the start tells what is wrong with it
	}
	return t
}

// run returns how the last run ended, given how the first one did. An agent that named a session goes on with it.
func (t *retry) run(ctx context.Context, o Outcome) Outcome {
	if t.prompt == nil {
		return o
	}
	defer t.prompt.Close() //nolint:errcheck // it is only read
	own, from := context.WithoutCancel(ctx), int64(0)
	r, err := t.worker.Store.Read(t.worker.ID)
	if err != nil {
		return o
	}
	t.begun = r.Started
	for n, wait := range t.worker.Backoff {
		report, err := t.worker.reportFrom(own, t.record, from)
		if err != nil || !report.Limited || o.ErrorCode != "" {
			return o
		}
		if !t.wait(ctx, n+1, wait) {
			o.Requested = ctx.Err() != nil
			return o
		}
		if info, err := os.Stat(t.worker.Store.Path(t.worker.ID, "stdout")); err == nil {
			from = info.Size()
		}
		child, next := t.start(own, report.Session)
		if child != nil {
			left := t.record
			if left.Timeout > 0 {
				left.Timeout = max(1, left.Timeout-Duration(t.worker.Now().Sub(t.begun)))
			}
			next = t.worker.watch(ctx, left, child)
		}
		next.Leftovers, next.Warnings = slices.Concat(o.Leftovers, next.Leftovers), slices.Concat(o.Warnings, next.Warnings)
		o = next
	}
	return o
}

// wait waits before the nth start. It reports false if the end of the job is asked for, or its time would be over.
func (t *retry) wait(ctx context.Context, n int, wait time.Duration) bool {
	until := t.worker.Now().Add(wait)
	if limit := time.Duration(t.record.Timeout); limit > 0 && until.Sub(t.begun) >= limit {
		return false
	}
	reason := fmt.Sprintf("its provider refused it for its rate: retry %d of %d at %s", n, len(t.worker.Backoff), until.UTC().Format(time.RFC3339))
	_, err := t.worker.Store.Update(context.WithoutCancel(ctx), t.worker.ID, func(r *Record) error { return Retry(r, t.me, nil, reason) })
	for err == nil && t.worker.Now().Before(until) {
		if r, unread := t.worker.Store.Read(t.worker.ID); unread == nil && r.Cancel != nil {
			return false
		}
		err = clock.Sleep(ctx, min(tick, wait))
	}
	return err == nil
}

// start starts the command once more. nil: it did not start, and the outcome says why.
func (t *retry) start(ctx context.Context, session string) (*process.Child, Outcome) {
	r := t.record
	if session != "" {
		r.Command = AgentOf(r.Agent).Resume(r.Command, session)
	}
	if _, err := t.prompt.Seek(0, 0); err != nil {
		return nil, Outcome{ErrorCode: PromptMissing, Reason: err.Error()}
	}
	child, lost, err := t.worker.spawn(r, t.prompt)
	if err != nil {
		return nil, Outcome{ErrorCode: CodeOf(err, SpawnFailed), Reason: err.Error()}
	}
	id, err := settle(ctx, child)
	code := SpawnFailed
	if err == nil {
		code = FinalizationFailed
		_, err = t.worker.Store.Update(ctx, t.worker.ID, func(r *Record) error {
			r.Warnings = append(r.Warnings, lost...)
			return Retry(r, t.me, id, "")
		})
	}
	if err != nil {
		return nil, t.worker.give(ctx, child, CodeOf(err, code), err)
	}
	return child, Outcome{}
}

// settle returns the identity of a command that has just started; nil: it has ended already.
func settle(ctx context.Context, child *process.Child) (*process.Identity, error) {
	limit, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	id, err := child.Capture(limit)
	switch {
	case errors.Is(err, process.ErrGone):
		return nil, nil //nolint:nilnil // its end is no failure
	case err != nil:
		return nil, err
	}
	return &id, nil
}

// Retry records that the command has ended and is started again later, for a reason; or, without one, that it was: then the
// retry counts.
func Retry(r *Record, worker process.Identity, command *process.Identity, reason string) error {
	if r.Status != Running || !owns(r, worker) {
		return &StateError{ID: r.ID, Status: r.Status, Want: "retry"}
	}
	r.Process, r.Reason = command, reason
	if reason == "" {
		r.Retries++
	}
	return nil
}

// isLimit reports whether the error of an agent says that its provider refused it for its rate. A limit of use for hours or days
// is none: no wait of minutes helps.
func isLimit(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(limitWords, func(word string) bool { return strings.Contains(text, word) })
}

// Backoff returns the usual waits before an agent is started again that its provider refuses for its rate: half an hour in all.
func Backoff() []time.Duration {
	return []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute}
}
