package sim

import (
	"slices"
	"strings"

	"vmctl/providers"
)

func (s *sequence) define() {
	s.add(providers.Step{
		Op: opDefine, Phase: providers.PhaseMake, Object: s.change.ID, Name: s.change.Name, Timeout: s.rules.Create,
		Takes: s.wanted(), Leaves: []string{"the file " + s.p.vmPath(s.change.Name)},
	})
}

// redefine is there if an edit reaches the VM's file, or if it is not whole.
func (s *sequence) redefine() {
	if !slices.ContainsFunc(s.change.Edits, touches) && !s.found(providers.FindPartial) {
		return
	}
	frees, takes := excluding(s.held(), s.wanted()), excluding(s.wanted(), s.held())
	if s.found(providers.FindPartial) {
		s.upload(providers.PhaseReserve)
	}
	s.addOn(providers.Step{
		Op: opRedefine, Phase: providers.PhaseChange, Timeout: fileTimeout, Frees: frees, Takes: takes,
		Leaves: []string{"the file " + s.p.vmPath(s.name())},
	})
}

// upload is there if the VM is made from an image.
func (s *sequence) upload(phase providers.Phase) {
	i, ok := imageOf(s.change.Want)
	if !ok || s.p.weightless {
		return
	}
	step := providers.Step{
		Op: opUpload, Phase: phase, Timeout: s.rules.Create, Args: map[string]string{argSource: i.source},
		Leaves: []string{"the file " + s.p.partPath(s.change.Address)},
	}
	if s.change.Action == providers.ReplaceIt { // the one before is there, and must be as it was
		step.Object, step.Name = s.change.Object.ID, s.change.Object.Name
		s.add(step)
		return
	}
	s.addOn(step)
}

// touches reports whether an edit changes the VM.
func touches(e providers.Edit) bool {
	return e.Path != "running" && e.Path != "boot.kernel" && e.Path != "boot.initrd" && !strings.HasPrefix(e.Path, "ssh.")
}

func (s *sequence) upIfWanted() {
	if s.on {
		s.up()
	}
}

func (s *sequence) up() {
	s.addOn(providers.Step{
		Op: opStart, Phase: providers.PhaseUp, Timeout: s.rules.StartTimeout,
		Takes:  s.locks(),
		Leaves: []string{"a process with the argument " + s.p.vmPath(s.name()), "the file " + s.p.pidPath(s.change.ID)},
	})
	if s.rules.Wait {
		s.addOn(providers.Step{Op: opWaitReady, Phase: providers.PhaseReady, Timeout: s.rules.WaitTimeout})
	}
}
