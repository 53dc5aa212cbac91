package libvirt

import (
	"fmt"
	"slices"

	"vmctl/providers"
	"vmctl/providers/machine"
)

// opGrow grows a disk in its place.
const opGrow = "grow"

// diskSteps says how a change of a disk is made.
func (p *Provider) diskSteps(c providers.Change) ([]providers.Step, error) {
	s := &diskSequence{p: p, change: c, policy: machine.DecodePolicy(c.Policy)}
	if err := s.read(); err != nil {
		return nil, err
	}
	switch c.Action {
	case providers.Create:
		s.define()
	case providers.ReplaceIt:
		s.delete()
		s.define()
	case providers.Destroy:
		s.delete()
	case providers.Forget:
		if o := c.Object; o != nil {
			step := machine.Unmark(s.policy.Create)
			step.Object, step.Name = o.ID, o.Name
			s.add(step)
		} else {
			s.delete()
		}
	case providers.Update, providers.Import, providers.RestartIt, providers.Recover, providers.Start, providers.Stop:
		s.alter()
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.steps, s.refusal()
}

// diskSequence collects the steps of one change of a disk.
type diskSequence struct {
	p      *Provider
	change providers.Change
	policy machine.Policy
	want   store
	steps  []providers.Step
}

func (s *diskSequence) read() error {
	if s.change.Action != providers.Create && s.change.Action != providers.ReplaceIt {
		return nil
	}
	var err error
	if s.want, err = storeOf(s.change.Want); err != nil {
		return fmt.Errorf("%s: %w", s.change.Address, err)
	}
	if !namePattern.MatchString(s.change.Name) {
		return fmt.Errorf("%s: name = %q: a name begins with a letter or a digit and has letters, digits and . _ + = ~ - only", s.change.Address, s.change.Name)
	}
	return nil
}

func (s *diskSequence) add(step providers.Step) { s.steps = machine.Append(s.steps, s.change, step) }

func (s *diskSequence) define() {
	volume := volumeOf(s.change.Name, s.want.Format)
	s.add(providers.Step{
		Op: opDefine, Phase: providers.PhaseMake, Object: s.change.ID, Name: s.change.Name, Timeout: s.policy.Create,
		Takes:  []providers.Claim{volumeClaim(s.p.place.URI, s.change.Name)},
		Leaves: []string{fmt.Sprintf("volumes %s and %s", volume, sidecarOf(volume))},
	})
}

// alter grows the disk or writes its mark: what needs neither concerns the record
// alone.
func (s *diskSequence) alter() {
	step := providers.Step{Op: opRedefine, Phase: providers.PhaseChange, Object: s.change.ID, Name: s.name(), Timeout: s.policy.Create}
	switch {
	case s.edits("size"):
		step.Op = opGrow
	case !s.edits("mark"):
		return
	}
	s.add(step)
}

func (s *diskSequence) edits(path string) bool {
	return slices.ContainsFunc(s.change.Edits, func(e providers.Edit) bool { return e.Path == path })
}

func (s *diskSequence) name() string {
	if s.change.Object != nil {
		return s.change.Object.Name
	}
	return s.change.Name
}

// delete takes the disk from whoever has it: who does not let go of it blocks that.
func (s *diskSequence) delete() {
	step := providers.Step{
		Op: opDelete, Phase: providers.PhaseRemove, Object: s.change.ID, Name: s.change.Name, Timeout: s.policy.Delete,
	}
	if o := s.change.Object; o != nil {
		step.Object, step.Name, step.Risk = o.ID, o.Name, providers.DataLoss
		step.Frees, step.Takes = o.Holds, []providers.Claim{machine.DiskClaim(o.ID)}
	}
	step.Leaves = []string{"its volume and the mark beside it"}
	s.add(step)
}

// refusal says why the steps could only fail as the disk is now.
func (s *diskSequence) refusal() error {
	o := s.change.Object
	if slices.ContainsFunc(s.steps, func(step providers.Step) bool { return step.Op == opGrow || step.Op == opDelete }) {
		if err := onLayers(o); err != nil {
			return err
		}
	}
	if o == nil || !s.edits("size") {
		return nil
	}
	for _, f := range o.Findings {
		if f.Kind == providers.FindHeldLock {
			return &providers.Refusal{Reason: f.Evidence[0], Next: []string{"shut it down first, or leave the size of " + s.change.Address.String() + " as it is"}}
		}
	}
	return nil
}
