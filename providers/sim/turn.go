package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"vmctl/internal/lockfile"
)

// turnFile is the lock of a host that several data directories may use.
const turnFile = "turn.lock"

// takeTurn keeps every other step away from the host until giveUp is called. Within one data
// directory the locks of its runs and files do that: only a host in a folder of its own needs
// turns.
func (p *Provider) takeTurn(ctx context.Context, wait time.Duration) (giveUp func() error, err error) {
	if !p.shared {
		return func() error { return nil }, nil
	}
	host, err := os.Hostname()
	if err == nil {
		err = os.MkdirAll(p.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for host %s: %w", p.settings.Name, err)
	}
	p.turning.Lock()
	held, err := lockfile.Acquire(ctx, lockfile.Request{
		Path: p.path(turnFile), Wait: wait,
		Owner: lockfile.Owner{PID: os.Getpid(), Host: host, Command: "vmctl", Since: time.Now().UTC()},
	})
	if err != nil {
		p.turning.Unlock()
		return nil, err
	}
	return func() error {
		defer p.turning.Unlock()
		return held.Release()
	}, nil
}

// await lets other steps act on the host while this one waits for an event there. Afterwards
// the host may differ from earlier observations.
func (t *task) await(ctx context.Context, wait func() error) error {
	giveUp := t.giveUp
	t.giveUp = func() error { return nil }
	if err := giveUp(); err != nil {
		return err
	}
	waited := wait()
	again, err := t.takeTurn(context.WithoutCancel(ctx), t.Timeout)
	if err == nil {
		t.giveUp = again
	}
	return errors.Join(waited, err)
}
