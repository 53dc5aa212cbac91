package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"vmctl/internal/clock"
	"vmctl/internal/process"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/providers/stop"
)

const (
	requestEvery = 5 * time.Second       // the pause between two requests to end
	askEvery     = 50 * time.Millisecond // the pause between two questions whether it is up
)

// takeDown ends all processes of the VM: by a request first, then by force. It removes their
// files only once they are confirmed to be gone.
func (j *job) takeDown(ctx context.Context) (*guard.Outcome, error) {
	return j.end(ctx, (*target)(j), j.reclaimAll)
}

// end ends a VM, and calls tidy once it is confirmed to be gone.
func (j *job) end(ctx context.Context, target stop.Target, tidy func(vmFile) error) (*guard.Outcome, error) {
	if err := j.successorFits(); err != nil {
		return nil, err
	}
	if !j.seen.onDisk { // once its processes are gone, nothing shows that it existed
		if err := j.writeVM(j.seen.vmFile); err != nil {
			return nil, fail(err, "%s %s", j.Op, j.Name)
		}
	}
	waited := j.waitUntilUp(ctx)
	r, err := stop.Stop(ctx, target, stop.Policy{
		Grace: j.policy.Grace, ForceWait: j.policy.ForceWait, Again: requestEvery, Forbidden: !j.policy.Force, StillSays: j.stillSays(),
	}, stop.Clock{Now: j.settings.Now, Sleep: j.sleep}, j.log)
	if err != nil {
		return nil, providers.SeenBefore(err, waited)
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := j.gone(own, tidy); err != nil {
		return nil, providers.SeenBefore(err, append(waited, r.Evidence...))
	}
	return guard.Did(r.How, append(waited, r.Evidence...)...), nil
}

// tookItselfDown tidies up after a VM that ended before anybody asked it to.
func (j *job) tookItselfDown(ctx context.Context) (*guard.Outcome, error) {
	switch {
	case j.seen == nil || j.seen.on():
		return nil, nil
	case j.seen.leftover == "" && j.seen.lock.verdict != lockStale:
		return guard.Did(providers.AlreadyTrue, "it is off"), nil
	}
	evidence := []string{cmp.Or(j.seen.leftover, j.seen.lock.evidence)}
	if err := j.gone(ctx, j.reclaim); err != nil {
		return nil, err
	}
	return guard.Did(providers.AlreadyGone, evidence...), nil
}

// waitUntilUp waits, if the step says so, until a VM that is still starting is up or its time
// for that is over, and returns the outcome as evidence.
func (j *job) waitUntilUp(ctx context.Context) []string {
	if !machine.ArgsOf(j.Step).WhenUp {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, j.policy.Ready)
	defer cancel()
	for waited := false; ; waited = true {
		a, err := j.runner().ask(limited, j.seen.vmFile, question{Ask: askReady})
		switch {
		case err == nil && a.Up && !waited, err != nil && !j.runs(ctx):
			return nil // it needs no wait, or the stop reports its problem
		case err == nil && a.Up:
			return []string{"it was still starting, and came up"}
		case !waited:
			j.log(providers.Progress{Text: fmt.Sprintf("it is still starting: waiting up to %s until it is up", j.policy.Ready)})
		}
		if j.await(ctx, func() error { return clock.Sleep(limited, askEvery) }) != nil {
			return []string{fmt.Sprintf("it was still starting, and did not come up within %s", j.policy.Ready)}
		}
	}
}

// runs reports whether the VM runs and nothing is wrong with it.
func (j *job) runs(ctx context.Context) bool {
	s, err := j.observeVM(ctx, j.Name)
	return err == nil && s.state == providers.StateRunning
}

func (j *job) reclaim(f vmFile) error    { return j.runnerOf(f).reclaim(f, false) }
func (j *job) reclaimAll(f vmFile) error { return j.runnerOf(f).reclaim(f, true) }

// gone tidies up after a VM that is confirmed to be gone.
func (j *job) gone(ctx context.Context, tidy func(vmFile) error) error {
	if child := j.forgetChild(j.Object); child != nil {
		// The look saw already how the process ended; this only collects it.
		_ = child.Wait(ctx) //nolint:errcheck // see above
	}
	f, err := j.readVM(j.Name)
	if err == nil {
		err = tidy(f)
	}
	if err != nil {
		return fail(err, "tidy up after %s, which has ended", j.Name)
	}
	return nil
}

func (j *job) stillSays() []providers.Advice {
	if !j.policy.Force {
		return providers.Say(
			fmt.Sprintf("give it more time: stop { grace = \"…\" } in %s", j.Address),
			fmt.Sprintf("or let vmctl force it: stop { force = true } in %s", j.Address),
		)
	}
	return providers.Say(fmt.Sprintf("see why its process does not end: %s", process.Words(j.seen.alive)))
}

// sleep returns after d, or as soon as none of the observed processes runs any more.
func (j *job) sleep(ctx context.Context, d time.Duration) error {
	return j.await(ctx, func() error {
		if len(j.seen.alive) == 0 {
			return clock.Sleep(ctx, d)
		}
		limited, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		// The next look decides whether they are gone.
		_ = j.processes.Wait(limited, j.seen.alive...) //nolint:errcheck // see above
		return ctx.Err()
	})
}

// target is a running VM as a stop.Target.
type target job

var _ stop.Target = (*target)(nil)

// Look reports whether any process of the VM runs, and whether the VM is still vmctl's.
func (t *target) Look(ctx context.Context) (stop.Observation, error) {
	j := (*job)(t)
	s, err := j.observeVM(ctx, j.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stop.Observation{Verdict: stop.Gone, Evidence: "gone"}, nil
	case err != nil:
		return stop.Observation{}, err
	case s.state == "":
		return stop.Observation{}, errors.New(s.reason)
	case s.ID != j.Object || !j.owns(s):
		return stop.Observation{Verdict: stop.Other, Evidence: "it no longer bears the mark of " + j.Address.String()}, nil
	}
	before := j.seen.alive
	j.seen = &s
	if s.on() {
		return stop.Observation{Verdict: stop.Runs, Evidence: cmp.Or(s.runs, process.Words(s.alive)+" runs it")}, nil
	}
	if s.alive = j.processes.Ending(before); len(s.alive) > 0 { // it still holds its disk
		return stop.Observation{Verdict: stop.Runs, Evidence: process.Words(s.alive) + " is ending"}, nil
	}
	return stop.Observation{Verdict: stop.Gone, Evidence: "no process runs it"}, nil
}

// Request asks the VM to end.
func (t *target) Request(ctx context.Context) error {
	return (*job)(t).runner().request(ctx, *t.seen)
}

// Force ends the VM.
func (t *target) Force(context.Context) error { return (*job)(t).runner().force(*t.seen) }
