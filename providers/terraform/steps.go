package terraform

import (
	"fmt"
	"strings"

	"vmctl/condition"
	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/providers/machine"
	"vmctl/spec"
)

// The operations of this provider's steps.
const (
	opApply   = "terraform_apply"
	opDestroy = "terraform_destroy"
	opWaitSSH = "wait_ssh"
	opRelease = guard.OpUnmark
)

// Steps implements providers.Provider.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	s := steps{change: c, policy: machine.DecodePolicy(c.Policy), tool: p.tool()}
	if m, err := p.readModule(); err == nil { // else its act tells
		s.foreseen.Setup = m.Setup
	}
	if c.Preview != nil {
		s.foreseen.Acts = c.Preview.Acts
	}
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes && s.policy.Wait {
		if outputs := ctyread.Attr(c.Want, "outputs"); outputOf(outputs, outAddress) == "" {
			return nil, providers.Refuse("apply is to wait until SSH answers, and no output tells its address",
				providers.Say(fmt.Sprintf("add to the block of %s: outputs = { address = \"NAME\" }", c.Address), "or do not wait: ssh { wait = false }"))
		}
	}
	switch c.Action {
	case providers.Create:
		s.apply(providers.PhaseMake)
		s.wait(machine.KeysNew)
	case providers.Update, providers.Import:
		s.apply(providers.PhaseChange)
		s.wait(machine.KeysKept)
	case providers.ReplaceIt:
		s.destroy()
		s.apply(providers.PhaseMake)
		s.wait(machine.KeysNew)
	case providers.Destroy:
		s.destroy()
	case providers.Start, providers.Recover:
		switch {
		case machine.Found(c.Object, providers.FindPartial): // it was never made whole
			s.apply(providers.PhaseChange)
			s.wait(machine.KeysNew)
		case c.Unready:
			s.wait(machine.KeysKept)
		default:
			return nil, s.notSupported("start")
		}
	case providers.Stop, providers.RestartIt:
		return nil, s.notSupported("stop")
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
func (s *steps) notSupported(what string) *providers.Problem {
	return providers.Refuse(string(s.tool)+" makes and destroys VMs, and cannot "+what+" one",
		providers.Say("give the module a variable for the power state, and set it in variables", what+" it with the tool of its cloud"))
}

// steps collects the steps of a change.
type steps struct {
	change   providers.Change
	policy   machine.Policy
	tool     spec.TerraformTool
	foreseen foreseen
	all      []providers.Step
}

func (s *steps) add(op string, phase providers.Phase, id providers.ID) *providers.Step {
	s.all = machine.Append(s.all, s.change, providers.Step{
		Op: op, Words: wordsOf(op, s.tool), Phase: phase, Object: id, Name: machine.Name(s.change), Timeout: s.policy.Create,
	})
	return &s.all[len(s.all)-1]
}

// wordsOf returns the words for an operation of a tool.
func wordsOf(op string, tool spec.TerraformTool) providers.Words {
	w := words[op]
	w.Doing = strings.ReplaceAll(w.Doing, string(spec.Terraform), string(tool))
	return w
}

func (s *steps) apply(phase providers.Phase) {
	step := s.add(opApply, phase, s.change.ID)
	step.Leaves = []string{"resources of the module that its state does not have yet"}
	step.Args = s.foreseen
	if len(s.change.Preview.Losing()) > 0 {
		step.Risk = providers.DataLoss
	}
}

// wait adds a step if apply waits for SSH.
func (s *steps) wait(keys machine.Keys) {
	if !s.policy.Wait {
		return
	}
	step := s.add(opWaitSSH, providers.PhaseReady, s.change.ID)
	step.Condition, step.Timeout, step.Args = condition.SSHReady, s.policy.Ready, machine.Args{Keys: keys}
}

func (s *steps) destroy() {
	step := s.add(opDestroy, providers.PhaseRemove, s.change.Object.ID)
	step.Name, step.Risk, step.Frees, step.Timeout = s.change.Object.Name, providers.DataLoss, s.change.Object.Holds, s.policy.Delete
	step.Args = foreseen{Setup: s.foreseen.Setup}
}
