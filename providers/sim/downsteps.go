package sim

import (
	"vmctl/providers"
)

// unlock is there if somebody who is gone still holds the disk of a VM that is
// off. Stopping one that runs frees its disk as well.
func (s *sequence) unlock() {
	o := s.change.Object
	if o == nil || o.State != providers.StateOff || !s.found(providers.FindStaleLock) {
		return
	}
	s.addOld(providers.Step{Op: opUnlock, Phase: providers.PhaseRelease, Timeout: fileTimeout, Frees: s.disk(o.Name)})
}

// tidy removes what the last run of a VM left that is off and stays so. Starting
// and deleting one do that by themselves.
func (s *sequence) tidy() {
	if s.change.Object.State == providers.StateOff && s.found(providers.FindLeftover) {
		s.addOld(providers.Step{Op: opClear, Phase: providers.PhaseRelease, Timeout: fileTimeout, Args: map[string]string{argKeep: yes}})
	}
}

// clear removes what is left of a VM that does not exist any more.
func (s *sequence) clear(phase providers.Phase, args map[string]string) {
	s.add(providers.Step{
		Op: opClear, Phase: phase, Object: s.change.ID, Name: s.change.Name, Timeout: fileTimeout, Args: args,
	})
}

func (s *sequence) down() {
	s.addOld(s.takeDown(opStop, providers.PhaseDown))
}

// downWhenUp lets a VM that is still starting come up first: a request during
// the start is lost, and a guest that is forced then may lose more.
func (s *sequence) downWhenUp() {
	step := s.takeDown(opStop, providers.PhaseDown)
	step.Timeout += s.rules.WaitTimeout
	step.Args = map[string]string{argWhenUp: yes}
	s.addOld(step)
}

func (s *sequence) takeDown(op string, phase providers.Phase) providers.Step {
	return providers.Step{
		Op: op, Phase: phase, Risk: providers.Downtime,
		Timeout: s.rules.Grace + s.rules.ForceWait + stopMargin,
	}
}

func (s *sequence) downIfOn() {
	if s.change.Object.State != providers.StateOff {
		s.down()
	}
}

// recover takes down what runs and does not work, and waits for what is on its
// way down.
func (s *sequence) recover() {
	switch s.change.Object.State {
	case providers.StateBroken:
		s.addOld(s.takeDown(opRecover, providers.PhaseRecover))
	case providers.StateEnding:
		s.down()
	}
}

func (s *sequence) delete() {
	s.unlock()
	var args map[string]string
	if s.makes() {
		args = withArg(nil, argThenMake)
	}
	s.addOld(providers.Step{
		Args: args,
		Op:   opDelete, Phase: providers.PhaseRemove, Risk: providers.DataLoss, Timeout: s.rules.Delete, Frees: s.held(), Takes: s.disk(s.change.Object.Name),
		Leaves: []string{"the file " + s.p.vmPath(s.change.Object.Name)},
	})
}
