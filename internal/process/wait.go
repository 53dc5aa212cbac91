package process

import (
	"context"
	"errors"
	"fmt"

	"vmctl/internal/clock"
)

// Wait returns nil once all processes are gone, also if ctx has ended by then. A pid that now
// belongs to another process counts as gone; a process that cannot be read does not. If ctx ends
// first, the error names a process that is left and its last observation. A record that this
// machine can never confirm, such as one of another machine, is a *RefusedError at once.
func (h Host) Wait(ctx context.Context, processes ...Identity) error {
	for _, id := range processes {
		if err := h.wait(ctx, id); err != nil {
			return fmt.Errorf("wait for %s to end: %w", id.describe(), err)
		}
	}
	return nil
}

func (h Host) wait(ctx context.Context, id Identity) error {
	here, err := h.sys().HostIdentity()
	if err != nil {
		return &RefusedError{Process: id, Verdict: Unknown, Reason: err.Error()}
	}
	if verdict, reason := here.locate(id); verdict == Unknown {
		return &RefusedError{Process: id, Verdict: verdict, Reason: reason}
	}
	for {
		gone, reason, err := h.watch(ctx, id)
		if gone || err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("%s: %w", reason, err)
		}
	}
}

// watch waits until the process has ended or should be examined again. It reports whether the
// process is gone, and otherwise the reason why it is not.
func (h Host) watch(ctx context.Context, id Identity) (gone bool, reason string, err error) {
	held, err := h.sys().Open(id.PID)
	if err != nil {
		held = endedHandle{}
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	verdict, reason := h.Verify(id)
	switch verdict {
	case Gone, Reused:
		return true, reason, nil
	case Match, Unknown:
		// Whoever is held: the recorded process, or one that came after it. The
		// end of either means that the recorded one is gone.
		return held.Ended(ctx), reason, nil
	default:
		panic("process: verdict " + verdict)
	}
}

// endedHandle is the handle of a process that could not be opened.
type endedHandle struct{}

func (endedHandle) Request() error { return errNone }
func (endedHandle) Force() error   { return errNone }
func (endedHandle) Close() error   { return nil }

func (endedHandle) Ended(ctx context.Context) bool {
	clock.Pause(ctx, pollEvery)
	return false
}
