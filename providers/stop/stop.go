// Package stop ends running targets, the one way for all of vmctl: verify the target,
// request, wait, verify again, force, wait, and confirm that it is gone. It never reports a
// stop before it has seen it.
package stop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vmctl/providers"
)

// Target is a VM or process that can be asked, or forced, to end.
type Target interface {
	// Look reads the present state and verifies that the target is still the same one. An
	// error means that it could not tell.
	Look(ctx context.Context) (Observation, error)
	// Request asks the target to end by itself. It may be repeated.
	Request(ctx context.Context) error
	// Force ends the target. After an error the target may still have ended: Look decides.
	Force(ctx context.Context) error
}

// Verdict is the outcome of a look.
type Verdict string

// Runs: the target runs. Gone: it is confirmed to be absent or off. Other: something else is
// in the target's place, which is never touched.
const (
	Runs  Verdict = "runs"
	Gone  Verdict = "gone"
	Other Verdict = "other"
)

// Observation holds the outcome of a look, with its evidence.
type Observation struct {
	Verdict  Verdict
	Evidence string        // in words: "shut off (shutdown)"
	How      providers.How // Gone: Graceful or Forced where the system tells; "" where it does not
	Deaf     bool          // Runs: it cannot hear a request, as Evidence says
}

// Policy holds the waits of a stop, and the choice of force.
type Policy struct {
	Grace     time.Duration      // between the request and force
	ForceWait time.Duration      // between force and giving up
	Again     time.Duration      // after which a request is repeated; 0: it is not
	Poll      time.Duration      // between two looks; 0: a quarter of a second
	Forbidden bool               // never force: fail when the grace is over
	StillSays []providers.Advice // what the user can do if it still runs
}

// Clock gives a procedure the time and its waits.
type Clock struct {
	Now func() time.Time
	// Sleep returns after d, or with the context's error when that ends first.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Result describes the end of the target.
type Result struct {
	How      providers.How // AlreadyTrue, Graceful or Forced
	Evidence []string
}

// Stop ends target by the policy. It succeeds only after it has seen the target gone; every
// error is a *providers.Problem with the last observation.
//
// When ctx ends, Stop forces nothing more: it looks once more and reports whether the target
// still runs.
func Stop(ctx context.Context, target Target, policy Policy, clock Clock, log providers.Log) (Result, error) {
	if policy.Poll <= 0 {
		policy.Poll = 250 * time.Millisecond
	}
	p := &procedure{Target: target, policy: policy, clock: clock, log: log, started: clock.Now()}
	return p.run(ctx)
}

type procedure struct {
	Target
	policy   Policy
	clock    Clock
	log      providers.Log
	started  time.Time
	evidence []string
}

func (p *procedure) run(ctx context.Context) (Result, error) {
	seen, err := p.Look(ctx)
	if err != nil {
		return Result{}, p.fail(providers.Failed, "unreadable", fmt.Errorf("stop: what runs cannot be read, and nothing was done: %w", err))
	}
	switch seen.Verdict {
	case Gone:
		return Result{How: providers.AlreadyTrue, Evidence: []string{seen.Evidence}}, nil
	case Other:
		return Result{}, p.other(seen)
	case Runs:
	}
	if seen.Deaf {
		p.see("%s: it cannot hear a request", seen.Evidence)
		if p.policy.Forbidden {
			return Result{}, p.still(providers.Timeout, seen.Evidence)
		}
		return p.force(ctx)
	}
	p.see("requested after %s", p.elapsed())
	seen, err = p.wait(ctx, p.policy.Grace, p.request)
	if err != nil || seen.Verdict != Runs {
		return p.ended(seen, providers.Graceful, err)
	}
	p.see("still running %s after the request", p.policy.Grace)
	if p.policy.Forbidden {
		return Result{}, p.still(providers.Timeout, seen.Evidence)
	}
	return p.force(ctx)
}

// request asks the target to end. The wait that follows decides whether that worked.
func (p *procedure) request(ctx context.Context) {
	if err := p.Request(ctx); err != nil {
		p.see("request failed: %v", err)
	}
}

// verifyLooks is the number of looks, before force, at a target that cannot be read: a system
// may be busy for a moment.
const verifyLooks = 3

// verify looks once more at the target before it is forced. It fails if none of several looks
// could read it.
func (p *procedure) verify(ctx context.Context) (seen Observation, err error) {
	for i := range verifyLooks {
		if i > 0 && p.clock.Sleep(ctx, p.policy.Poll) != nil {
			break
		}
		if seen, err = p.Look(ctx); err == nil {
			break
		}
	}
	return seen, err
}

// force verifies once more, ends the target and confirms that it is gone.
func (p *procedure) force(ctx context.Context) (Result, error) {
	seen, err := p.verify(ctx)
	if err != nil {
		return Result{}, p.fail(providers.Unsafe, "unverified",
			fmt.Errorf("stop: it could not be verified before it was forced, so it was not: %w", err))
	}
	switch seen.Verdict {
	case Gone:
		return p.ended(seen, providers.Graceful, nil)
	case Other:
		return Result{}, p.other(seen)
	case Runs:
	}
	p.log(providers.Progress{Text: "forcing it off"})
	p.see("forced after %s", p.elapsed())
	if err := p.Force(ctx); err != nil {
		p.see("force reported: %v", err)
	}
	seen, err = p.wait(ctx, p.policy.ForceWait, nil)
	if err != nil || seen.Verdict != Runs {
		return p.ended(seen, providers.Forced, err)
	}
	return Result{}, p.still(providers.Failed, seen.Evidence)
}

// wait looks until the target is gone or the limit is reached, and repeats the request by the
// policy. The last look counts, even if it failed.
func (p *procedure) wait(ctx context.Context, limit time.Duration, request func(context.Context)) (Observation, error) {
	start := p.clock.Now()
	var asked time.Time
	if request != nil {
		p.log(providers.Progress{Text: fmt.Sprintf("asked it to shut down, waiting up to %s", limit)})
		request(ctx)
		asked = start
	}
	for {
		seen, err := p.Look(ctx)
		if err == nil && seen.Verdict != Runs {
			return seen, nil
		}
		now := p.clock.Now()
		if now.Sub(start) >= limit {
			return seen, err
		}
		if request != nil && p.policy.Again > 0 && now.Sub(asked) >= p.policy.Again {
			request(ctx)
			asked = now
		}
		if err := p.clock.Sleep(ctx, min(p.policy.Poll, limit-now.Sub(start))); err != nil {
			return p.lastLook(ctx)
		}
	}
}

var errEnded = errors.New("the wait was ended")

// lastLook looks once more after ctx has ended.
func (p *procedure) lastLook(ctx context.Context) (Observation, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	seen, err := p.Look(own)
	if err != nil {
		return seen, err
	}
	if seen.Verdict == Runs {
		return seen, fmt.Errorf("%w: %w", errEnded, context.Cause(ctx))
	}
	return seen, nil
}

// ended turns the outcome of a wait into a result.
func (p *procedure) ended(seen Observation, how providers.How, err error) (Result, error) {
	switch {
	case errors.Is(err, errEnded):
		p.see("%v", err)
		return Result{}, p.still(providers.Timeout, seen.Evidence)
	case err != nil:
		return Result{}, p.fail(providers.Failed, "not_confirmed",
			fmt.Errorf("stop: could not confirm that it stopped: %w", err))
	case seen.Verdict == Other:
		return Result{}, p.other(seen)
	}
	if seen.How != "" {
		how = seen.How
	}
	p.see("gone after %s: %s", p.elapsed(), seen.Evidence)
	return Result{How: how, Evidence: p.evidence}, nil
}

func (p *procedure) still(outcome providers.Outcome, evidence string) error {
	f := p.fail(outcome, "still_running", fmt.Errorf("stop: it is still running after %s (%s)", p.elapsed(), evidence))
	f.Next = p.policy.StillSays
	return f
}

func (p *procedure) other(seen Observation) error {
	return p.fail(providers.Stale, "not_the_same", fmt.Errorf("stop: it is not the one that was to be stopped: %s", seen.Evidence))
}

func (p *procedure) fail(outcome providers.Outcome, code string, err error) *providers.Problem {
	return &providers.Problem{Outcome: outcome, Code: code, Seen: p.evidence, Err: err}
}

func (p *procedure) see(format string, args ...any) {
	p.evidence = append(p.evidence, fmt.Sprintf(format, args...))
}

func (p *procedure) elapsed() time.Duration {
	return p.clock.Now().Sub(p.started).Round(100 * time.Millisecond)
}
