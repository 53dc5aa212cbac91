package cli

import (
	"context"
	"time"

	"vmctl/cmd/internal/view"
)

// patience is the time that an interrupted command waits for its readers. hurry is the same
// for a command that leaves at once.
const (
	patience = time.Second
	hurry    = 200 * time.Millisecond
)

// loosen ends the waiting for readers of both streams.
func (a *app) stopWaiting() {
	a.stdout.stopWaiting()
	a.stderr.stopWaiting()
}

// unread waits until the reader has taken all of standard output. It fails if an interrupt
// ends the wait.
func (a *app) unread(ctx context.Context) error {
	if a.stdout.drain(ctx, patience) {
		return nil
	}
	return newProblem(classInterrupted, "interrupted", "interrupted: the reader of standard output did not take all of it")
}

// farewell gives readers time to take the last output.
func (a *app) farewell(ctx context.Context) {
	a.stderr.drain(ctx, patience)
	a.stdout.drain(ctx, patience)
}

// mutatingCommand holds the command that changes objects, and the plan command to suggest if vmctl
// leaves at once.
type mutatingCommand struct{ command, plan string }

// changing notes that the command is changing objects, until done is called.
func (a *app) mutating(p mutatingCommand) (done func()) {
	a.changes.Store(&p)
	return func() { a.changes.Store(nil) }
}

// leave ends a running command, restores the terminal, and returns the exit code.
func (a *app) leave(ctx context.Context) int {
	a.stopWaiting()
	if p := a.changes.Load(); p != nil {
		e := newProblem(classInterrupted, "left", p.command+": left at once: what was under way may be half done",
			p.plan+" says what was interrupted")
		if a.global.json {
			a.line(view.ErrorEvent{Type: "error", FailureDocument: view.FailureJSON(e.ProblemDocument, nil)})
		}
		a.stdout.update(nil, view.Frame{})
		view.Failed(a.errScreen(), e.ProblemDocument)
	}
	a.stdout.close()
	a.stderr.close()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	a.stderr.drain(ended, hurry)
	a.stdout.drain(ended, hurry)
	return classInterrupted.code()
}
