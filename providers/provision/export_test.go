package provision

import (
	"context"
	"errors"
	"time"

	"vmctl/providers"
)

// WriteLog writes pieces of a log into a file as a copier does, which masks them.
func WriteLog(path string, mask func(string) string, pieces ...string) error {
	c := newCopier(path, providers.Work{Mask: mask}, nil)
	c.begin()
	var err error
	for _, piece := range pieces {
		_, wrong := c.Write([]byte(piece))
		err = errors.Join(err, wrong)
	}
	return errors.Join(err, c.close())
}

// Runs are the runs of one script in a guest.
type Runs struct{ in inside }

// In returns the runs of the script of that name.
func In(g providers.Guest, name string) Runs { return Runs{inside{guest: g, name: name}} }

// Found is the run that a start finds or starts.
type Found struct {
	Run, Digest string
	Ended       bool
	Ran, Limit  time.Duration
}

// Start starts a run for a step unless one goes on or it has ended well, and returns the run that there is.
// The script may run for an hour.
func (r Runs) Start(ctx context.Context, run, step, digest, text string, env ...string) (Found, error) {
	b, err := r.in.start(ctx, run, step, digest, script{text: text, env: env, timeout: time.Hour})
	return Found{b.run, b.digest, b.ended, b.ran, b.limit}, err
}

// Follow writes the log of a run into a file until the run ends, and returns its status.
func (r Runs) Follow(ctx context.Context, run, path string) (status int, err error) {
	c := newCopier(path, providers.Work{}, nil)
	c.begin()
	status, err = r.in.follow(ctx, run, c)
	return status, errors.Join(err, c.close())
}

// End ends a run by force.
func (r Runs) End(ctx context.Context, run string) error { return r.in.end(ctx, run) }

// Lost is the status of a script whose end nobody saw.
const Lost = statusLost
