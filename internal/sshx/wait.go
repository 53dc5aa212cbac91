package sshx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Probe connects to the target and logs in, once. It succeeds only after the server has shown an
// accepted host key and let the user in: an accepted connection alone proves nothing.
func Probe(ctx context.Context, t Target) error {
	client, err := t.Connect(ctx)
	if err != nil {
		return err
	}
	return client.Close()
}

// WaitOptions sets the interval, the checks and the reports of Wait.
type WaitOptions struct {
	// Every is the shortest time from the begin of one attempt to that of the next. It grows to a
	// twentieth of the time waited so far, up to 5 s. An attempt that waits for the server's first
	// words opens a new connection as often.
	Every time.Duration
	// Check is called between attempts; its error ends the wait. May be nil.
	Check func(context.Context) error
	// Log is told why the server is not there yet, once per reason. May be nil.
	Log   func(reason string)
	Sleep func(context.Context, time.Duration) error
	// Settling reports whether the guest may still get its host key, so that a wrong one does not end the
	// wait. May be nil.
	Settling func() bool
	// HostKeyOnly waits for no login: a server that has proven its host key, and lets
	// nobody in, is there.
	HostKeyOnly bool
}

// WaitError reports that the context ended before the target let the user in.
type WaitError struct{ Last error } // why the last attempt failed

// Error says why the last attempt failed.
func (e *WaitError) Error() string { return "no login over SSH in time: " + e.Last.Error() }

// Unwrap returns why the last attempt failed.
func (e *WaitError) Unwrap() error { return e.Last }

// Wait probes the target until it succeeds or ctx ends, which is a *WaitError.
// A wrong host key, an unusable private key and an error of Check end it at
// once. A refused login does not: a guest may get its keys late.
//
// Each attempt is a connection of its own. The first one waits a tenth of t.Banner for the
// server's first words, and each later one half as long again, up to t.Banner (0: 5 seconds), or to a tenth of the
// time waited so far if that is more, up to 4 times t.Banner: a connection that a forwarder accepted
// before the guest listened may never be answered, and a guest that is only slow is answered in the
// end. Beside it, short connections find a guest that begins to listen meanwhile. A slow guest works
// for each of them: at a steady pace of two a second, it would answer none.
func Wait(ctx context.Context, t Target, w WaitOptions) error {
	last := errors.New("no attempt was made")
	said := ""
	longest := cmp.Or(t.Banner, 5*time.Second)
	begin := time.Now()
	t.Banner, t.eager = 0, func() time.Duration { return interval(w.Every, time.Since(begin)) }
	for {
		t.Banner = nextBanner(t.Banner, max(longest, min(time.Since(begin)/10, 4*longest)))
		began := time.Now()
		err := Probe(ctx, t)
		var auth *AuthError
		if err == nil || w.HostKeyOnly && errors.As(err, &auth) {
			return nil
		}
		if w.isFinal(err) {
			return err
		}
		if hasEnded(ctx) {
			return &WaitError{Last: last}
		}
		last = err
		if reason := err.Error(); w.Log != nil && reason != said {
			w.Log(reason)
			said = reason
		}
		if w.Check != nil {
			if err := w.Check(ctx); err != nil && !hasEnded(ctx) { // at the end, it may be the end that failed
				return err
			}
		}
		if err := w.Sleep(ctx, max(t.eager()-time.Since(began), 0)); err != nil {
			return &WaitError{Last: last}
		}
	}
}

// interval returns the time from one connection to the next, for a wait that has taken waited so far
// and began with a connection every so often. An OpenSSH server drops connections once 10 of them have
// not logged in (MaxStartups).
func interval(every, waited time.Duration) time.Duration {
	return max(every, min(waited/20, 5*time.Second))
}

// nextBanner returns how long an attempt waits for the server's first words; before is the wait
// of the attempt before it, 0 for the first one.
func nextBanner(before, longest time.Duration) time.Duration {
	if before == 0 {
		return longest / 10
	}
	return min(before*3/2, longest)
}

// hasEnded reports whether ctx has ended. An attempt that its deadline cut off says
// so a moment earlier than ctx does, and nothing about the server.
func hasEnded(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// isFinal reports whether no later attempt can succeed after err.
func (w WaitOptions) isFinal(err error) bool {
	var key *HostKeyError
	var identity *IdentityError
	if errors.As(err, &key) {
		return w.Settling == nil || !w.Settling()
	}
	return errors.As(err, &identity)
}

// String names the target for people: root@127.0.0.1:40022.
func (t Target) String() string { return fmt.Sprintf("%s@%s", t.User, t.hostPort()) }
