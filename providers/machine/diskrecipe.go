package machine

import (
	"fmt"
	"slices"
	"time"

	"vmctl/internal/ctyread"
	"vmctl/providers"
)

// The operations of a disk's recipe, beside OpDefine, OpRedefine (which writes its owner
// mark), OpDelete and OpUnmark.
const (
	OpGrow   = "grow"   // make it larger in its place, in use or not
	OpUnlock = "unlock" // free it from a holder that is gone
)

// DiskAbilities holds a system's part in one change of a disk, as far as it decides the
// steps.
type DiskAbilities struct {
	Policy Policy
	Change time.Duration            // how long a change of it may take
	Wanted []providers.Claim        // the claims that it holds once it is made
	Lock   []providers.Claim        // its lock, if the system has locks that outlive their holders
	Clear  string                   // the operation that removes the remains of a disk that is gone
	Leaves func(op string) []string // lists the remains that an operation may leave behind
}

// DiskRecipe returns the steps of a change of a disk. It is pure. The steps are in the order
// of their phases, each after the one before it. It returns a *providers.Problem if somebody
// holds the disk, or did not release it.
func DiskRecipe(c providers.Change, a DiskAbilities) ([]providers.Step, error) {
	s := &diskSequence{change: c, DiskAbilities: a}
	switch c.Action {
	case providers.Create:
		s.define()
	case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Stop:
		s.unlock()
		s.alter()
	case providers.Recover: // the user wants the lock removed
		s.release()
	case providers.ReplaceIt:
		s.remove()
		s.define()
	case providers.Destroy:
		s.remove()
	case providers.Forget:
		if c.Object != nil {
			s.addOld(Unmark(a.Change))
		} else {
			s.add(providers.Step{Op: a.Clear, Phase: providers.PhaseRemove, Timeout: a.Policy.Delete})
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.steps, s.refusal
}

// diskSequence collects the steps of one change of a disk.
type diskSequence struct {
	DiskAbilities
	change  providers.Change
	steps   []providers.Step
	refusal error
}

// add adds a step on the disk that the change makes or keeps; addOld adds one on the existing
// disk.
func (s *diskSequence) add(step providers.Step) {
	if step.Object == "" {
		step.Object, step.Name = s.change.ID, s.change.Name
	}
	step.Leaves = s.Leaves(step.Op)
	s.steps = Append(s.steps, s.change, step)
}

func (s *diskSequence) addOld(step providers.Step) {
	step.Object, step.Name = s.change.Object.ID, s.change.Object.Name
	s.add(step)
}

func (s *diskSequence) define() {
	s.add(providers.Step{Op: OpDefine, Phase: providers.PhaseMake, Timeout: s.Policy.Create, Takes: s.Wanted})
}

// alter writes the mark of the disk, and grows it. Other edits concern the record alone.
func (s *diskSequence) alter() {
	if s.change.Mark != nil {
		s.addOld(providers.Step{Op: OpRedefine, Phase: providers.PhaseChange, Timeout: s.Change})
	}
	if s.edits("size") {
		s.unheld("shut it down first, or leave the size of " + s.change.Address.String() + " as it is")
		s.addOld(providers.Step{Op: OpGrow, Phase: providers.PhaseChange, Timeout: s.Change})
	}
}

func (s *diskSequence) edits(path string) bool {
	return slices.ContainsFunc(s.change.Edits, func(e providers.Edit) bool { return e.Path == path })
}

// remove adds the step that deletes the disk. It refuses the change if a lock's holder still
// lives.
func (s *diskSequence) remove() {
	if s.Lock != nil { // else a claim of the holder blocks the step
		s.unheld("let its holder end first")
	}
	s.unlock()
	o := s.change.Object
	s.addOld(providers.Step{
		Op: OpDelete, Phase: providers.PhaseRemove, Risk: providers.DataLoss, Timeout: s.Policy.Delete,
		Frees: o.Holds, Takes: []providers.Claim{DiskClaim(o.ID)},
	})
}

// unheld refuses the change if a living holder has the disk.
func (s *diskSequence) unheld(next string) {
	for _, f := range s.change.Object.Findings {
		if f.Kind == providers.FindHeldLock && s.refusal == nil {
			s.refusal = providers.Refuse(fmt.Sprintf("somebody holds disk %s: %s", s.change.Object.Name, f.Evidence[0]), providers.Say(next))
		}
	}
}

// unlock adds a step that removes the lock of a holder that is gone. It refuses the change if
// the policy wants a person to look first.
func (s *diskSequence) unlock() {
	if Found(s.change.Object, providers.FindStaleLock) && ctyread.Text(s.change.Policy, "on_stale_lock") == "refuse" && s.refusal == nil {
		s.refusal = providers.Refuse(
			fmt.Sprintf("who held disk %s is gone, and on_stale_lock = \"refuse\"", s.change.Object.Name),
			slices.Concat(
				providers.SayVmctl("see that what it wrote is whole, then free the disk: ", "disk", "unlock", s.change.Address.String()),
				providers.Say(fmt.Sprintf("or let vmctl free it: on_stale_lock = \"unlock\" in the block of %s", s.change.Address)),
			),
		)
	}
	s.release()
}

func (s *diskSequence) release() {
	if Found(s.change.Object, providers.FindStaleLock) {
		s.addOld(providers.Step{Op: OpUnlock, Phase: providers.PhaseRelease, Timeout: s.Change, Frees: s.Lock})
	}
}
