package process

import (
	"context"
	"errors"
	"fmt"

	"vmctl/internal/clock"
)

// Wait returns nil once all processes are seen to be gone, also when ctx has
// ended by then: a pid that belongs to another by now counts, and what cannot be
// read does not. When ctx ends first the error says which process is left, and
// what was seen of it last. A record that can never be confirmed from here, as
// one of another machine, is a *RefusedError at once.
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

// watch waits for the end of the process, or for another look to be worth it. It
// reports whether the process is gone, and else what was seen.
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

// endedHandle is the handle of a process that could not be held.
type endedHandle struct{}

func (endedHandle) Request() error { return errNone }
func (endedHandle) Force() error   { return errNone }
func (endedHandle) Close() error   { return nil }

func (endedHandle) Ended(ctx context.Context) bool {
	clock.Pause(ctx, pollEvery)
	return false
}
