package sshx

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Probe connects to the target and logs in, once. It succeeds only after the server has shown an
// accepted host key and let the user in: an accepted connection alone proves nothing.
func Probe(ctx context.Context, t Target) error {
	client, err := t.dial(ctx)
	if err != nil {
		return err
	}
	return client.Close()
}

// WaitOptions sets the interval, the checks and the reports of Wait.
type WaitOptions struct {
	Every time.Duration // from the begin of an attempt to that of the next, at least
	// Check is called between attempts; its error ends the wait. May be nil.
	Check func(context.Context) error
	// Log is told why the server is not there yet, once per reason. May be nil.
	Log   func(reason string)
	Sleep func(context.Context, time.Duration) error
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
// server's first words, and each later one half as long again, up to t.Banner: a connection
// that a forwarder accepted before the guest listened may never be answered, and a guest that
// is only slow is answered in the end.
func Wait(ctx context.Context, t Target, w WaitOptions) error {
	last := errors.New("no attempt was made")
	said := ""
	longest, _ := t.limits()
	t.Banner = 0
	for {
		t.Banner = nextBanner(t.Banner, longest)
		began := time.Now()
		err := Probe(ctx, t)
		var auth *AuthError
		if err == nil || w.HostKeyOnly && errors.As(err, &auth) {
			return nil
		}
		if permanent(err) {
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
		if err := w.Sleep(ctx, max(w.Every-time.Since(began), 0)); err != nil {
			return &WaitError{Last: last}
		}
	}
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

func permanent(err error) bool {
	var key *HostKeyError
	var identity *IdentityError
	return errors.As(err, &key) || errors.As(err, &identity)
}

// String names the target for people: root@127.0.0.1:40022.
func (t Target) String() string { return fmt.Sprintf("%s@%s", t.User, t.hostPort()) }
