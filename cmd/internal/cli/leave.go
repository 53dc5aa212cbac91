package cli

import (
	"context"
	"time"

	"vmctl/cmd/internal/view"
)

// patience is how long an interrupted command waits for its reader, and hurry
// how long one does that leaves at once.
const (
	patience = time.Second
	hurry    = 200 * time.Millisecond
)

// loosen lets nothing wait for a reader any more.
func (a *app) loosen() {
	a.stdout.loosen()
	a.stderr.loosen()
}

// unread waits until standard output was read. An interrupt ends that.
func (a *app) unread(ctx context.Context) error {
	if a.stdout.drain(ctx, patience) {
		return nil
	}
	return newProblem(classInterrupted, "interrupted", "interrupted: the reader of standard output did not take all of it")
}

// farewell gives readers the time to take what was said last.
func (a *app) farewell(ctx context.Context) {
	a.stderr.drain(ctx, patience)
	a.stdout.drain(ctx, patience)
}

// parting is what to say when something is left that changes objects.
type parting struct{ command, plan string }

// changing says until its result is called that objects are being changed.
func (a *app) changing(p parting) (done func()) {
	a.changes.Store(&p)
	return func() { a.changes.Store(nil) }
}

// leave ends the command while it is still under way, and returns its exit code.
// The terminal is left as it was found.
func (a *app) leave(ctx context.Context) int {
	a.loosen()
	if p := a.changes.Load(); p != nil {
		e := newProblem(classInterrupted, "left", p.command+": left at once: what was under way may be half done",
			p.plan+" says what was interrupted")
		if a.global.json {
			a.line(view.ErrorEvent{Type: "error", FailureDocument: view.FailureJSON(e.Problem, nil)})
		}
		a.stdout.update(nil, view.Frame{})
		view.Failed(a.errScreen(), e.Problem)
	}
	a.stdout.close()
	a.stderr.close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	a.stderr.drain(ended, hurry)
	a.stdout.drain(ended, hurry)
	return classInterrupted.code()
}
