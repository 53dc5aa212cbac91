package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/providers/stop"
)

// requestEvery is the pause between two requests to shut down: a guest that is still booting does not
// hear the first ones.
const requestEvery = 5 * time.Second

// takeDown ends all processes of the instance: by a request first, then by force. It removes their
// files, and frees the disks, only once they are confirmed to be gone.
func (j *job) takeDown(ctx context.Context) (*guard.Outcome, error) {
	if err := j.checkNext(ctx); err != nil {
		return nil, err
	}
	waited := j.waitUntilUp(ctx)
	r, err := stop.Stop(ctx, j.ending(), stop.Policy{
		Grace: j.policy.Grace, ForceWait: j.policy.ForceWait, Again: requestEvery, Forbidden: !j.policy.Force, StillSays: j.stillSays(),
	}, stop.Clock{Now: j.settings.Now, Sleep: j.sleep}, j.log)
	if err != nil {
		return nil, providers.SeenBefore(err, waited)
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceLimit)
	defer cancel()
	// What is ending still holds its sockets.
	if err := j.processes.Wait(own, identities(j.seen.agents, j.seen.drivers)...); err != nil {
		return nil, providers.SeenBefore(fail(err, "stop %s", j.Name), append(waited, r.Evidence...))
	}
	removed, err := j.reclaim(own)
	if err == nil {
		var did []string
		did, err = j.unregisterDead(ctx)
		removed = append(removed, did...)
	}
	if err != nil {
		return nil, providers.SeenBefore(fail(err, "tidy up after %s, which has ended", j.Name), append(waited, r.Evidence...))
	}
	return guard.Did(r.How, slices.Concat(waited, r.Evidence, removed)...), nil
}

// tookItselfDown tidies up after an instance that ended before anybody asked it to.
func (j *job) tookItselfDown(ctx context.Context) (*guard.Outcome, error) {
	switch {
	case j.seen == nil || j.seen.on():
		return nil, nil
	case j.seen.leftover == "":
		return guard.Did(providers.AlreadyTrue, "it is off"), nil
	}
	evidence := j.seen.leftover
	removed, err := j.reclaim(ctx)
	if err != nil {
		return nil, fail(err, "tidy up after %s, which has ended", j.Name)
	}
	return guard.Did(providers.AlreadyGone, append([]string{evidence}, removed...)...), nil
}

// waitUntilUp waits, if the step says so, until an instance that is still starting is up or its time
// for that is over: before that its host agent loses a request. It returns the outcome as evidence.
func (j *job) waitUntilUp(ctx context.Context) []string {
	if !machine.ArgsOf(j.Step).WhenUp || !j.seen.starting() {
		return nil
	}
	j.log(providers.Progress{Text: fmt.Sprintf("it is still starting: waiting up to %s until it is up", j.policy.Ready)})
	for began := j.settings.Now(); ; {
		// ctx has no deadline of this wait, which would cut the last observation off: the state would be unknown.
		s, err := j.readInstance(ctx, j.Name, j.find(ctx))
		switch {
		case err != nil || s.state == stateUnknown: // for a moment, perhaps
		case s.state != providers.StateRunning:
			return nil // the stop decides
		case !s.starting():
			return []string{"it was still starting, and came up"}
		}
		if j.settings.Now().Sub(began) >= j.policy.Ready || j.host.Sleep(ctx, pollInterval) != nil {
			return []string{fmt.Sprintf("it was still starting, and did not come up within %s", j.policy.Ready)}
		}
	}
}

func (j *job) stillSays() []providers.Advice {
	if !j.policy.Force {
		return providers.Say(
			fmt.Sprintf("give it more time: stop { grace = \"…\" } in %s", j.Address),
			fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", j.Address),
		)
	}
	return providers.Say(fmt.Sprintf("see why its processes do not end: %s %s", process.Words(identities(j.seen.agents)), process.Words(identities(j.seen.drivers))))
}

// sleep returns after d, or as soon as none of the observed processes runs any more.
func (j *job) sleep(ctx context.Context, d time.Duration) error {
	alive := identities(j.seen.agents, j.seen.drivers)
	if len(alive) == 0 {
		return j.host.Sleep(ctx, d)
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	// The next observation decides whether they are gone.
	_ = j.processes.Wait(limited, alive...) //nolint:errcheck // see above
	return ctx.Err()
}

// target is an instance that runs as a stop.Target.
type target job

var _ stop.Target = (*target)(nil)

// Look reports whether any process of the instance runs, and whether the instance is still vmctl's. What
// QEMU's monitor says does not count: it is silent while the host agent shuts the guest down.
func (t *target) Look(ctx context.Context) (stop.Observation, error) {
	j := (*job)(t)
	f := j.find(ctx)
	s := &instance{name: j.Name, id: unmarkedID("vm", j.Name)}
	if err := j.readFiles(s); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stop.Observation{}, err
	}
	s.agents, s.drivers = f.of[j.Name][roleAgent], f.of[j.Name][roleDriver]
	if len(s.agents)+len(s.drivers) == 0 {
		if f.err != nil {
			return stop.Observation{}, f.err
		}
		if ending := j.processes.Ending(identities(j.seen.agents, j.seen.drivers)); len(ending) > 0 { // it still holds its disks
			return stop.Observation{Verdict: stop.Runs, Evidence: process.Words(ending) + " is ending"}, nil
		}
		return stop.Observation{Verdict: stop.Gone, Evidence: "no process runs it"}, nil
	}
	s.state = providers.StateRunning
	if exists(j.dir(j.Name)) && !j.owns(s) {
		return stop.Observation{Verdict: stop.Other, Evidence: "it no longer bears the mark of " + j.Address.String()}, nil
	}
	j.seen.agents, j.seen.drivers = s.agents, s.drivers
	o := stop.Observation{Verdict: stop.Runs, Evidence: evidenceOf(s)}
	o.Deaf = len(s.drivers) > 0 && !exists(j.path(j.Name, qmpSock))
	return o, nil
}

func evidenceOf(s *instance) string {
	switch {
	case len(s.agents) == 0:
		return "QEMU (" + process.Words(identities(s.drivers)) + ") runs, without a host agent"
	case len(s.drivers) == 0:
		return "its host agent (" + process.Words(identities(s.agents)) + ") runs, without QEMU"
	default:
		return "its host agent (" + process.Words(identities(s.agents)) + ") and QEMU (" + process.Words(identities(s.drivers)) + ") run"
	}
}

// Request asks the guest to shut down over QEMU's monitor, which works whatever its host agent does. A host agent that
// were asked itself would kill QEMU: after 3 minutes, or at once if it finds no monitor. It ends by itself once QEMU is
// gone; one that does not is asked then, and ended if it hears nothing. QEMU itself is never asked to end: it would do
// so at once.
func (t *target) Request(ctx context.Context) error {
	agents := identities(t.seen.agents)
	switch {
	case len(t.seen.drivers) > 0:
		t.agentAsked = false
		return powerDown(ctx, t.path(t.Name, qmpSock))
	case t.agentAsked && t.seen.wsl == nil:
		return process.Each(agents, func(id process.Identity) error {
			_, err := t.processes.Force(id)
			return err
		})
	default:
		t.agentAsked = true
		return process.Each(agents, t.processes.Request)
	}
}

// Force ends QEMU first, so that no host agent starts anything anew, and then the host agent.
func (t *target) Force(context.Context) error {
	return process.Each(identities(t.seen.drivers, t.seen.agents), func(id process.Identity) error {
		_, err := t.processes.Force(id)
		return err
	})
}
