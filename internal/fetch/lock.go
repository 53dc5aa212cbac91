package fetch

import (
	"context"
	"errors"
	"time"

	"vmctl/internal/lockfile"
)

// forever is longer than any download: a waiting process waits until ctx ends.
const forever = 1000 * time.Hour

// lock waits until nobody else downloads the same file, in this process or another.
func (j *job) lock(ctx context.Context) (unlock func() error, err error) {
	turn := j.cache.turnOf(j.folder)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	held, err := lockfile.Acquire(ctx, lockfile.Request{
		Path: j.path(lockName), Owner: j.cache.Owner, Wait: forever,
		Waiting: func(o lockfile.Owner) {
			j.say("waiting for another process that downloads it (pid %d)", o.PID)
		},
	})
	if err != nil {
		<-turn
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, j.localError(err)
	}
	return func() error {
		err := held.Release()
		<-turn
		if err != nil {
			return j.localError(err)
		}
		return nil
	}, nil
}

// turnOf returns the channel of a folder, which only one goroutine of this process can
// fill at a time: the kernel's lock does not keep goroutines of one process apart.
func (c *Cache) turnOf(folder string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turn == nil {
		c.turn = map[string]chan struct{}{}
	}
	if c.turn[folder] == nil {
		c.turn[folder] = make(chan struct{}, 1)
	}
	return c.turn[folder]
}

// localError returns the *Error for a failure on this machine. A full disk removes the part.
func (j *job) localError(err error) error {
	e := &Error{Code: "cache", Err: j.failed("keep it in "+j.cache.Dir, err)}
	if isFull(err) {
		e.Code = "disk_full"
		e.Next = []string{"make room: df -h " + j.cache.Dir}
		return errors.Join(e, j.removePart())
	}
	return e
}
