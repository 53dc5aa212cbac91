package libvirt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/stop"
)

// requestEvery is the pause between two requests to shut down: early in its boot a guest does
// not listen yet.
const requestEvery = 5 * time.Second

// stop takes the domain down: by a request first, then by force.
func (j *job) stop(ctx context.Context) (*guard.Outcome, error) {
	return j.takeDown(ctx, j.policy.Grace)
}

// recover takes down a domain that cannot run on.
func (j *job) recover(ctx context.Context) (*guard.Outcome, error) {
	return j.takeDown(ctx, 0)
}

func (j *job) takeDown(ctx context.Context, grace time.Duration) (*guard.Outcome, error) {
	if err := j.jobless(); err != nil {
		return nil, err
	}
	if err := j.successorFits(ctx); err != nil {
		return nil, err
	}
	r, err := stop.Stop(ctx, (*domainTarget)(j), stop.Policy{
		Grace: grace, ForceWait: j.policy.ForceWait, Again: requestEvery, Forbidden: !j.policy.Force,
		StillSays: j.stillSays(),
	}, stop.Clock{Now: j.settings.Now, Sleep: j.sleep}, j.log)
	if err != nil {
		return nil, err
	}
	return guard.Did(r.How, r.Evidence...), nil
}

func (j *job) stillSays() []providers.Advice {
	if !j.policy.Force {
		return providers.Say(
			fmt.Sprintf("give it more time: stop { grace = \"…\" } in %s", j.Address),
			fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", j.Address),
		)
	}
	return providers.Say(fmt.Sprintf("see why QEMU does not end: virsh -c %s domstate --reason %s", j.location.URI, j.Name))
}

// domainTarget is the running domain as a stop.Target.
type domainTarget job

var _ stop.Target = (*domainTarget)(nil)

// Look reads the run state and the owner of the domain.
func (g *domainTarget) Look(ctx context.Context) (stop.Observation, error) {
	j := (*job)(g)
	if err := j.reconnect(ctx); err != nil {
		return stop.Observation{}, err
	}
	s, err := j.read(ctx, j.connection)
	if errors.Is(err, errAbsent) { // it had no configuration, and vanished when it stopped
		return stop.Observation{Verdict: stop.Gone, Evidence: "gone"}, nil
	}
	if err != nil {
		return stop.Observation{}, err
	}
	if !j.owns(s) {
		return stop.Observation{Verdict: stop.Other, Evidence: "it no longer bears the mark of " + j.Address.String()}, nil
	}
	if s.power.on() {
		return stop.Observation{Verdict: stop.Runs, Evidence: s.power.Words, Deaf: s.power.Reason == broke}, nil
	}
	seen := stop.Observation{Verdict: stop.Gone, Evidence: s.power.Words}
	if s.power.Reason == byRequest {
		seen.How = providers.Graceful
	}
	if s.power.Reason == byForce {
		seen.How = providers.Forced
	}
	return seen, nil
}

// Request presses the power button. It first resumes or wakes a guest that is paused or
// asleep, which could not react.
func (g *domainTarget) Request(ctx context.Context) error {
	if err := (*job)(g).reconnect(ctx); err != nil {
		return err
	}
	now, err := g.Power(ctx, string(g.Object))
	if err != nil {
		return err
	}
	if now.State == providers.StatePaused && now.Reason == byUser {
		if err := g.Resume(ctx, string(g.Object)); err != nil {
			return err
		}
	}
	if now.Reason == asleep {
		if err := g.Wake(ctx, string(g.Object)); err != nil {
			return err
		}
	}
	return g.Shutdown(ctx, string(g.Object))
}

// Force ends QEMU.
func (g *domainTarget) Force(ctx context.Context) error { return g.Destroy(ctx, string(g.Object)) }
