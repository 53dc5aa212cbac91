package lima

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"vmctl/internal/process"
	"vmctl/internal/wsl"
	"vmctl/providers/stop"
)

// ending returns the instance as the target of a stop.
func (j *job) ending() stop.Target {
	if j.seen.wsl != nil {
		return (*wslTarget)(j)
	}
	return (*target)(j)
}

// wslTarget is an instance of WSL that runs, as a stop.Target.
type wslTarget job

var _ stop.Target = (*wslTarget)(nil)

// Look reports whether the distribution or a host agent runs, and whether the instance is still vmctl's. It
// fails if WSL does not tell.
func (t *wslTarget) Look(ctx context.Context) (stop.Observation, error) {
	j := (*job)(t)
	s, err := j.readInstance(ctx, j.Name, j.find(ctx))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stop.Observation{Verdict: stop.Gone, Evidence: "it is gone, with its registration"}, nil
	case err != nil:
		return stop.Observation{}, err
	case s.wsl == nil:
		return stop.Observation{}, errors.New("its vmType is another one by now")
	case s.state == stateUnknown:
		return stop.Observation{}, s.unknown()
	case len(s.agents) == 0 && !s.runsInWSL():
		return stop.Observation{Verdict: stop.Gone, Evidence: fmt.Sprintf("neither the distribution %s nor a host agent runs", distributionOf(s.name))}, nil
	case exists(j.dir(j.Name)) && !j.owns(s):
		return stop.Observation{Verdict: stop.Other, Evidence: "it no longer bears the mark of " + j.Address.String()}, nil
	}
	j.seen.agents, j.seen.wsl = s.agents, s.wsl
	evidence := fmt.Sprintf("the distribution %s runs", distributionOf(s.name))
	switch {
	case !s.runsInWSL():
		evidence = "its host agent (" + process.Words(identities(s.agents)) + ") runs"
	case len(s.agents) > 0:
		evidence += ", and its host agent (" + process.Words(identities(s.agents)) + ")"
	}
	return stop.Observation{Verdict: stop.Runs, Evidence: evidence}, nil
}

// Request asks the guest to shut down; its host agent ends with it. A host agent that is left is asked itself.
func (t *wslTarget) Request(ctx context.Context) error {
	if t.seen.runsInWSL() {
		return t.host.WSL.PowerOff(ctx, t.seen.wsl.own.Name)
	}
	return process.Each(identities(t.seen.agents), t.processes.Request)
}

// Force ends the host agents first, so that none of them starts the distribution anew, and then the
// distribution.
func (t *wslTarget) Force(ctx context.Context) error {
	err := process.Each(identities(t.seen.agents), func(id process.Identity) error {
		_, err := t.processes.Force(id)
		return err
	})
	if t.seen.runsInWSL() {
		err = errors.Join(err, t.host.WSL.Terminate(ctx, t.seen.wsl.own.Name))
	}
	return err
}

// offInWSL fails unless the distribution of the instance is known to be off.
func (j *job) offInWSL(f found) error {
	if j.seen == nil || j.seen.wsl == nil {
		return nil
	}
	all, err := f.wsl.distributions()
	if err != nil {
		return err
	}
	if d := wsl.Find(all, distributionOf(j.Name)); d != nil && d.IsIn(j.dir(j.Name)) && d.State != wsl.Stopped {
		return errRuns
	}
	return nil
}

// unregisterDead removes the registration of an instance that has ended and whose root disk is gone: WSL would
// start it into an error for ever. An instance that has lost its folder gets it back, with its mark, and is half
// made then. It returns what it did, in words.
func (j *job) unregisterDead(ctx context.Context) ([]string, error) {
	if w := j.seen.wsl; w == nil || w.own == nil || exists(w.own.Disk) {
		return nil, nil
	}
	s, err := j.readInstance(ctx, j.Name, j.find(ctx))
	switch {
	case errors.Is(err, fs.ErrNotExist): // its registration went meanwhile
		return nil, nil
	case err != nil:
		return nil, err
	case s.state == stateUnknown:
		return nil, s.unknown()
	case s.wsl == nil || !s.wsl.dead || s.mark != nil && s.mark.ID != j.Object:
		return nil, nil
	}
	did, err := j.host.WSL.Unregister(ctx, *s.wsl.own)
	if err != nil || s.mark == nil || exists(j.path(j.Name, markName)) {
		return did, err
	}
	if err := os.MkdirAll(j.dir(j.Name), 0o700); err != nil {
		return did, err
	}
	return did, writeJSON(j.path(j.Name, markName), s.mark)
}

// unregister removes the registration of an instance that is to be deleted, and its root disk with it.
func (j *job) unregister(ctx context.Context) ([]string, error) {
	if j.seen.wsl == nil || j.seen.wsl.own == nil {
		return nil, nil
	}
	return j.host.WSL.Unregister(ctx, *j.seen.wsl.own)
}

// terminateStarted ends the distribution of an instance whose start failed, unless somebody else has a host
// agent for it.
func (j *job) terminateStarted(ctx context.Context) error {
	if j.seen.wsl == nil {
		return nil
	}
	s, err := j.readInstance(ctx, j.Name, j.find(ctx))
	if err != nil || len(s.agents) > 0 || !s.runsInWSL() {
		return err
	}
	return j.host.WSL.Terminate(ctx, s.wsl.own.Name)
}
