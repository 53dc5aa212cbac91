package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/spec"
)

// Awaited is a VM whose SSH a step waits for, with what its provider knows of it.
type Awaited struct {
	Address spec.Address
	Target  sshx.Target
	Every   time.Duration // the shortest time between the beginnings of two attempts; 0: 250 ms
	Limit   time.Duration // of the step, for its words: the end of ctx is what counts
	Sleep   func(context.Context, time.Duration) error
	Say     func(text string)           // why the guest is not there yet, once for each reason
	Check   func(context.Context) error // called between attempts: its error ends the wait; nil: nothing can end but the time
	// Settling reports whether the guest may still get its host key; nil: it has it.
	Settling    func() bool
	HostKeyOnly bool // a guest that has proven its host key, and lets nobody in, is there
	// Late returns what was seen of a guest that does not let vmctl in, and what to do about it; refused: it lets others in.
	Late func(refused bool) (seen []string, next []providers.Advice)
	// Other returns what is known of a guest that shows another host key than the pinned one, and what to do about it.
	Other func(*sshx.HostKeyError) (seen []string, next []providers.Advice)
}

// Wait waits until the guest shows its pinned host key and lets vmctl in. An error is a *providers.Problem, or that of Check.
func (a Awaited) Wait(ctx context.Context) error {
	if a.Every == 0 {
		a.Every = 250 * time.Millisecond
	}
	err := sshx.Wait(ctx, a.Target, sshx.WaitOptions{
		Every: a.Every, Sleep: a.Sleep, Check: a.Check, Settling: a.Settling, HostKeyOnly: a.HostKeyOnly,
		Log: func(reason string) { a.Say(fmt.Sprintf("trying %s: %s", a.Target, reason)) },
	})
	var key *sshx.HostKeyError
	var identity *sshx.IdentityError
	var late *sshx.WaitError
	var auth *sshx.AuthError
	switch {
	case errors.As(err, &key):
		seen, next := a.Other(key)
		return &providers.Problem{Outcome: providers.Unsafe, Code: "host_key_changed", Seen: seen, Next: next, Err: a.failed(key)}
	case errors.As(err, &identity):
		return &providers.Problem{Outcome: providers.Failed, Code: "keys", Next: providers.Say("see what is there: ls -l " + a.Target.IdentityFile), Err: a.failed(identity)}
	case errors.As(err, &late):
		return a.TooLate(ctx, "last attempt: "+late.Last.Error(), errors.As(late, &auth))
	default:
		return err
	}
}

// TooLate returns the problem of a guest that was not ready when ctx ended. last is what was seen of it last; refused: it refuses
// the login.
func (a Awaited) TooLate(ctx context.Context, last string, refused bool) *providers.Problem {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &providers.Problem{Outcome: providers.Failed, Code: "interrupted", Seen: []string{last}, Err: a.failed(errors.New("interrupted; it runs on"))}
	}
	seen, next := a.Late(refused)
	p := &providers.Problem{
		Outcome: providers.Timeout, Code: "no_ssh", Seen: append([]string{last}, seen...),
		Next: slices.Concat(next, providers.Say(fmt.Sprintf("or give it more time: ssh { wait_timeout = \"…\" } in %s", a.Address))),
		Err:  a.failed(fmt.Errorf("%s did not let vmctl in within %s", a.Target, a.Limit)),
	}
	if refused {
		p.Code = "ssh_refused"
	}
	return p
}

func (a Awaited) failed(why error) error { return fmt.Errorf("wait for SSH of %s: %w", a.Address, why) }

// WithKey returns a login whose private key is on this machine.
func WithKey(l providers.Login) (providers.Login, error) {
	if _, err := os.Lstat(l.IdentityFile); err != nil {
		return providers.Login{}, fmt.Errorf("this machine has no key to log in with: %s is missing", l.IdentityFile)
	}
	return l, nil
}
