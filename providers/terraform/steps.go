package terraform

import (
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
)

// The operations of this provider's steps.
const (
	opApply   = "terraform_apply"
	opDestroy = "terraform_destroy"
	opRelease = guard.OpUnmark
)

// Steps implements providers.Provider.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	s := steps{change: c, policy: machine.DecodePolicy(c.Policy)}
	switch c.Action {
	case providers.Create:
		s.apply(providers.PhaseMake)
	case providers.Update, providers.Import:
		s.apply(providers.PhaseChange)
	case providers.ReplaceIt:
		s.destroy()
		s.apply(providers.PhaseMake)
	case providers.Destroy:
		s.destroy()
	case providers.Start, providers.Recover:
		if !machine.Found(c.Object, providers.FindPartial) {
			return nil, notSupported("start")
		}
		s.apply(providers.PhaseChange) // it was never made whole
	case providers.Stop, providers.RestartIt:
		return nil, notSupported("stop")
	case providers.Forget:
		if c.Object != nil {
			s.add(opRelease, providers.PhaseTidy, c.Object.ID)
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.all, nil
}

// notSupported returns the refusal of a change of the run state.
func notSupported(what string) *providers.Problem {
	return providers.Refuse("Terraform makes and destroys VMs, and cannot "+what+" one",
		providers.Say("give the module a variable for the power state, and set it in variables", what+" it with the tool of its cloud"))
}

// steps collects the steps of a change.
type steps struct {
	change providers.Change
	policy machine.Policy
	all    []providers.Step
}

func (s *steps) add(op string, phase providers.Phase, id providers.ID) *providers.Step {
	s.all = machine.Append(s.all, s.change, providers.Step{
		Op: op, Words: words[op], Phase: phase, Object: id, Name: machine.Name(s.change), Timeout: s.policy.Create,
	})
	return &s.all[len(s.all)-1]
}

func (s *steps) apply(phase providers.Phase) {
	s.add(opApply, phase, s.change.ID).Leaves = []string{"resources of the module that its state does not have yet"}
}

func (s *steps) destroy() {
	step := s.add(opDestroy, providers.PhaseRemove, s.change.Object.ID)
	step.Name, step.Risk, step.Frees, step.Timeout = s.change.Object.Name, providers.DataLoss, s.change.Object.Holds, s.policy.Delete
}
