package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// steps collects the steps of a change.
type steps struct {
	change providers.Change
	now    providers.ID // of the object that exists; "": none
	all    []providers.Step
}

func (s *steps) add(op string, phase providers.Phase, id providers.ID) *providers.Step {
	s.all = machine.Append(s.all, s.change, providers.Step{Op: op, Words: words[op], Phase: phase, Object: id, Name: s.change.Name, Timeout: quick})
	return &s.all[len(s.all)-1]
}

// Steps implements providers.Provider.
func (p *Objects) Steps(c providers.Change) ([]providers.Step, error) {
	s := steps{change: c}
	if c.Object != nil {
		s.now = c.Object.ID
	}
	switch c.Action {
	case providers.Create:
		s.make()
	case providers.ReplaceIt:
		switch {
		case s.keepsName():
			s.renew()
		default:
			s.replace()
		}
	case providers.RestartIt:
		s.restart()
	case providers.Update, providers.Import, providers.Recover, providers.Start, providers.Stop:
		s.alter()
	case providers.Destroy:
		s.stop(providers.PhaseDown)
		s.dropFirst()
		s.remove()
	case providers.Release:
		s.release()
	case providers.Adopt, providers.NoOp, providers.Forget: // labels cannot be taken off: the state forgets it
	default:
		panic("unknown action " + string(c.Action))
	}
	if s.pulls() && ctyread.Text(c.Policy, "pull") == pullNever {
		return nil, neverPulled(c)
	}
	return s.all, nil
}

// makeOp returns the operation that makes an object as wanted.
func (s *steps) makeOp() string {
	switch {
	case s.change.Kind != spec.Image:
		return opMake
	case isBuilt(s.change.Want):
		return opBuild
	case isPulled(s.change.Want):
		return opPull
	default:
		return opLoad
	}
}

// makeLimit returns how long it may take to make an object.
func (s *steps) makeLimit() time.Duration {
	return ctyread.Seconds(ctyread.Attr(s.change.Policy, "timeouts"), "create", 30*time.Minute)
}

// pulls reports whether a step pulls an image.
func (s *steps) pulls() bool {
	return slices.ContainsFunc(s.all, func(step providers.Step) bool { return step.Op == opPull })
}

// keepsName reports whether an image is replaced by one that gets its name in the same engine.
func (s *steps) keepsName() bool {
	c := s.change
	moves := func(e providers.Edit) bool { return e.Path == "engine" || e.Path == "ref" }
	return c.Kind == spec.Image && len(c.Edits) > 0 && !slices.ContainsFunc(c.Edits, moves)
}

// renew adds the steps that give the name of an image to another content. Until that is there, the name leads to the one before,
// and so does the record. What the name led to goes once nobody uses it. A build, a load, and a pull of what the plan shows come
// before anybody goes down.
func (s *steps) renew() {
	op, args := s.makeOp(), providers.Args(nil)
	for _, e := range s.change.Edits {
		if e.Path == "digest" && op == opPull {
			args = pinned{e.After.AsString()}
		}
	}
	if op == opBuild || op == opLoad || args != nil {
		step := s.add(op, providers.PhasePrepare, s.now)
		step.Timeout, step.Args = s.makeLimit(), args
		op = opTag
	}
	step := s.add(op, providers.PhaseChange, s.change.ID)
	step.Timeout, step.Args = s.makeLimit(), args
}

func (s *steps) make() {
	c := s.change
	step := s.add(s.makeOp(), providers.PhaseMake, c.ID)
	step.Timeout = s.makeLimit()
	step.Takes = takes(c)
	if c.Kind == spec.Container {
		s.bring(stateCreated, ctyread.Text(c.Want, "state"), c.ID)
	}
}

// takes returns the claims of an object that is made.
func takes(c providers.Change) []providers.Claim {
	if c.Kind == spec.Image {
		return []providers.Claim{refClaim(canonical(ctyread.Text(c.Want, "ref")))}
	}
	return []providers.Claim{nameClaim(c.Kind, engineName(c.Name))}
}

func refClaim(ref string) providers.Claim { return providers.Claim{Kind: "image", Key: ref} }

func nameClaim(kind spec.Kind, name string) providers.Claim {
	return providers.Claim{Kind: things[kind] + " name", Key: name}
}

// ports returns the claims of a container on ports of the engine's machine, which it holds while it runs.
func ports(want cty.Value) []providers.Claim {
	var all []providers.Claim
	for _, port := range ctyread.List(ctyread.Attr(want, "port")) {
		host := strconv.FormatUint(ctyread.Uint(port, "host"), 10)
		all = append(all, portClaim(ctyread.Text(port, "host_ip"), host, ctyread.Text(port, "protocol")))
	}
	return all
}

func portClaim(ip, port, protocol string) providers.Claim {
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return providers.Claim{Kind: providers.ClaimPort, Key: ip + ":" + port + "/" + protocol}
}

// bring adds the steps that bring a container from one state to another.
func (s *steps) bring(from, to string, id providers.ID) {
	if from == to {
		return
	}
	timeout := ctyread.Seconds(ctyread.Attr(s.change.Policy, "start"), "timeout", 5*time.Minute)
	switch {
	case to == stateCreated:
		s.stop(providers.PhaseDown)
		return
	case from == statePaused:
		s.add(opUnpause, providers.PhaseUp, id)
	case from == stateCreated:
		step := s.add(opStart, providers.PhaseUp, id)
		step.Timeout, step.Takes = timeout, ports(s.change.Want)
		if to == stateRunning && ctyread.Known(ctyread.Attr(s.change.Want, "healthcheck")) {
			s.add(opHealthy, providers.PhaseReady, id).Timeout = timeout
		}
	}
	if to == statePaused {
		s.add(opPause, providers.PhaseUp, id)
	}
}

// alter adds the steps of edits that apply live.
func (s *steps) alter() {
	c := s.change
	state, limits := "", false
	if machine.Found(c.Object, providers.FindPartial) {
		s.add(opUnpark, providers.PhaseChange, s.now)
	}
	for _, e := range c.Edits {
		switch e.Path {
		case "state":
			state = ctyread.Text(c.Want, "state")
		case "restart", "memory", "cpus":
			if !limits {
				s.add(opUpdate, providers.PhaseChange, s.now)
			}
			limits = true
		}
	}
	if state != "" && c.Object != nil {
		s.bring(ctyread.Text(c.Object.Attrs, "state"), state, s.now)
	}
	if machine.Found(c.Object, providers.FindLeftover) {
		s.drop(s.now)
	}
}

// restart stops a container that runs or is paused, and starts it again.
func (s *steps) restart() {
	s.stop(providers.PhaseDown)
	s.bring(stateCreated, stateRunning, s.now)
}

// stop adds the stop of a container that runs or is paused.
func (s *steps) stop(phase providers.Phase) {
	c := s.change
	if c.Kind != spec.Container || c.Object == nil || ctyread.Text(c.Object.Attrs, "state") == stateCreated {
		return
	}
	step := s.add(opStop, phase, s.now)
	policy := stopPolicy(c.Policy)
	step.Risk, step.Timeout = providers.Downtime, policy.Grace+policy.ForceWait+quick
	step.Frees = c.Object.HoldsUp
}

func (s *steps) remove() {
	step := s.add(opRemove, providers.PhaseRemove, s.now)
	step.Timeout = ctyread.Seconds(ctyread.Attr(s.change.Policy, "timeouts"), "delete", 2*time.Minute)
	step.Risk, step.Frees, step.Takes = providers.DataLoss, s.change.Object.Holds, ended(s.change.Object)
	switch {
	case forces(s.change.Kind, s.change.Policy): // whoever uses it
		step.Takes, step.Args = nil, forcing{}
	case s.change.Kind == spec.Container && s.change.Action == providers.ReplaceIt:
		step.Args = succeeded{labelNames(s.change.Prior)}
	}
}

// release stops a container before the machine of its engine goes down, and starts it, and pauses it, once that is up again, if this
// plan brings it up: else nothing is wanted of the container.
func (s *steps) release() {
	c := s.change
	if c.Kind != spec.Container || c.Object == nil || ctyread.Text(c.Object.Attrs, "state") == stateCreated {
		return
	}
	s.stop(providers.PhaseRelease)
	to := ctyread.Text(c.Want, "state")
	if c.Want == cty.NilVal || to == stateCreated {
		return
	}
	s.add(opStart, providers.PhaseResume, s.now)
	if to == statePaused {
		s.add(opPause, providers.PhaseResume, s.now)
	}
}
