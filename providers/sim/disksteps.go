package sim

import (
	"fmt"
	"slices"

	"vmctl/internal/ctyread"
	"vmctl/providers"
	"vmctl/providers/machine"
)

// diskSequence collects the steps of one change of a disk.
type diskSequence struct {
	p      *Provider
	change providers.Change
	policy machine.Policy
	steps  []providers.Step
}

func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	s := &diskSequence{p: p, change: c, policy: machine.DecodePolicy(c.Policy)}
	if makes := c.Action == providers.Create || c.Action == providers.ReplaceIt; makes && !isName(c.Name) {
		return nil, fmt.Errorf("%s: %w", c.Address, badName(c.Name))
	}
	switch c.Action {
	case providers.Create:
		s.define()
	case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Stop:
		if err := s.unlock(); err != nil {
			return nil, err
		}
		s.redefine()
	case providers.Recover: // the user says that the lock is to go
		s.release()
	case providers.ReplaceIt:
		if err := s.delete(); err != nil {
			return nil, err
		}
		s.define()
	case providers.Destroy:
		if err := s.delete(); err != nil {
			return nil, err
		}
	case providers.Forget:
		if c.Object != nil {
			s.addOld(machine.Unmark(fileTimeout))
		} else {
			s.add(providers.Step{Op: opClear, Phase: providers.PhaseRemove, Object: c.ID, Name: c.Name, Timeout: s.policy.Delete})
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.steps, nil
}

func (s *diskSequence) add(step providers.Step) {
	s.steps = machine.Append(s.steps, s.change, step)
}

// addOld adds a step on the disk that is there before the change.
func (s *diskSequence) addOld(step providers.Step) {
	step.Object, step.Name = s.change.Object.ID, s.change.Object.Name
	s.add(step)
}

func (s *diskSequence) define() {
	s.add(providers.Step{
		Op: opDefine, Phase: providers.PhaseMake, Object: s.change.ID, Name: s.change.Name, Timeout: s.policy.Create,
		Takes:  []providers.Claim{diskNameClaim(s.change.Name)},
		Leaves: []string{"the file " + s.p.diskMark(s.change.Name), "the file " + s.p.diskPath(s.change.Name)},
	})
}

// redefine is there if an edit reaches the disk: its size, or what its mark says.
func (s *diskSequence) redefine() {
	grows := func(e providers.Edit) bool { return e.Path == "size" }
	marks := func(e providers.Edit) bool { return e.Path == "mark" }
	leaves := []string{"the file " + s.p.diskMark(s.change.Object.Name)}
	if slices.ContainsFunc(s.change.Edits, marks) {
		s.addOld(providers.Step{Op: opRedefine, Phase: providers.PhaseChange, Timeout: fileTimeout, Leaves: leaves})
	}
	if slices.ContainsFunc(s.change.Edits, grows) {
		s.addOld(providers.Step{Op: opGrow, Phase: providers.PhaseChange, Timeout: fileTimeout, Leaves: leaves})
	}
}

// unlock is there if somebody who is gone still holds the disk.
func (s *diskSequence) unlock() error {
	if !s.found(providers.FindStaleLock) {
		return nil
	}
	if ctyread.Text(s.change.Policy, "on_stale_lock") == "refuse" {
		return &providers.Refusal{
			Reason: fmt.Sprintf("who held disk %s is gone, and on_stale_lock = \"refuse\"", s.change.Object.Name),
			Next: []string{
				"see that what it wrote is whole, then free the disk: vmctl disk unlock " + s.change.Address.String(),
				fmt.Sprintf("or let vmctl free it: on_stale_lock = \"unlock\" in the block of %s", s.change.Address),
			},
		}
	}
	s.release()
	return nil
}

func (s *diskSequence) release() {
	if s.found(providers.FindStaleLock) {
		s.addOld(providers.Step{
			Op: opUnlock, Phase: providers.PhaseRelease, Timeout: fileTimeout, Frees: []providers.Claim{diskLockClaim(s.change.Object.Name)},
		})
	}
}

func (s *diskSequence) delete() error {
	o := s.change.Object
	if i := slices.IndexFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == providers.FindHeldLock }); i >= 0 {
		return &providers.Refusal{
			Reason: fmt.Sprintf("somebody holds disk %s: %s", o.Name, o.Findings[i].Evidence[0]),
			Next:   []string{"let its holder end first"},
		}
	}
	if err := s.unlock(); err != nil {
		return err
	}
	s.addOld(providers.Step{
		Op: opDelete, Phase: providers.PhaseRemove, Risk: providers.DataLoss, Timeout: s.policy.Delete,
		Frees: o.Holds, Takes: []providers.Claim{machine.DiskClaim(o.ID)}, Leaves: []string{"the file " + s.p.diskMark(o.Name)},
	})
	return nil
}

func (s *diskSequence) found(kind providers.FindingKind) bool {
	o := s.change.Object
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
}
