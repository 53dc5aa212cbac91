package busy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vmctl/internal/lockfile"
	"vmctl/spec"
	"vmctl/state"
)

// Closing describes a request to close a VM.
type Closing struct {
	Address   spec.Address
	By        state.Holder
	Interrupt bool          // do not wait for the processes inside
	Wait      time.Duration // the longest wait for the processes inside; 0: none
	// Waiting is called before the first wait, and again whenever other processes are
	// inside than at its last call. It is not called if Wait is 0. nil is fine.
	Waiting func([]state.Holder)
}

const (
	// minWait is the shortest wait for the commands inside, also if Wait is shorter: a command
	// that is just entering finds the VM closed and leaves.
	minWait = 500 * time.Millisecond
	// pollInterval is the interval at which Close lists the commands inside while it waits.
	pollInterval = time.Second
)

// Close keeps other commands out of a VM until open is called or the process ends. It returns once
// no command is inside, or at once if it may interrupt them. It fails with an *OccupiedError, with
// a *ClosedError if another command has closed the VM, and with the error of ctx if that ends the
// wait.
func (f Folder) Close(ctx context.Context, c Closing) (open func() error, err error) {
	if err := f.makeDir(); err != nil {
		return nil, err
	}
	door, err := lockfile.Acquire(ctx, lockfile.Request{Path: f.closedPath(c.Address), Owner: lockfile.Owner(c.By)})
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held) && ctx.Err() == nil:
		return nil, &ClosedError{Address: c.Address, By: state.Holder(held.Owner)}
	case err != nil:
		return nil, fmt.Errorf("keep others out of %s: %w", c.Address, err)
	case c.Interrupt:
		return door.Release, nil
	}
	inside, err := f.clear(ctx, c)
	if err != nil {
		return nil, errors.Join(err, door.Release())
	}
	return func() error { return errors.Join(inside.Release(), door.Release()) }, nil
}

// clear waits until no command is inside, and returns the shared lock, held alone.
func (f Folder) clear(ctx context.Context, c Closing) (*lockfile.Lock, error) {
	var told []state.Holder
	limit, cancel := context.WithTimeout(ctx, max(c.Wait, minWait))
	defer cancel()
	for {
		if err := f.tellHolders(ctx, c, &told); err != nil {
			return nil, err
		}
		alone, err := lockfile.Acquire(limit, lockfile.Request{Path: f.inside(c.Address), Owner: lockfile.Owner(c.By), Wait: pollInterval})
		var held *lockfile.HeldError
		switch {
		case err == nil:
			return alone, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("wait for those inside %s: %w", c.Address, context.Cause(ctx))
		case !errors.As(err, &held):
			return nil, fmt.Errorf("wait for those inside %s: %w", c.Address, err)
		case limit.Err() != nil:
			return nil, &OccupiedError{Address: c.Address, Holders: holdersOf(held.Sharers), Waited: c.Wait}
		}
	}
}

// tellHolders calls Waiting with the commands inside, if there are any and they differ from those
// in told.
func (f Folder) tellHolders(ctx context.Context, c Closing, told *[]state.Holder) error {
	if c.Wait <= 0 || c.Waiting == nil {
		return nil
	}
	now, err := f.holders(ctx, c.Address)
	if err != nil {
		return err
	}
	if len(now) > 0 && !slices.Equal(now, *told) {
		c.Waiting(now)
		*told = now
	}
	return nil
}
