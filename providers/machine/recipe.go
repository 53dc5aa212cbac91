package machine

import (
	"slices"
	"time"

	"vmctl/condition"
	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// The operations of a recipe. A system may add some of its own.
const (
	OpDefine   = "define"   // make the object
	OpRedefine = "redefine" // change its definition
	OpDetach   = "detach"   // remove the claims that the step frees from its definition
	OpStart    = "start"
	OpStop     = "stop"    // ask it to end, and force it if the policy allows that
	OpRecover  = "recover" // end an object that runs and does not work
	OpDelete   = "delete"
	OpUnmark   = guard.OpUnmark
)

// Produces returns the conditions that the steps of Recipe report.
func Produces() map[spec.Kind][]string { return map[spec.Kind][]string{spec.VM: {condition.SSHReady}} }

// stopMargin is the time for a system's own answers, beyond the grace of a stop.
const stopMargin = 30 * time.Second

// Abilities holds a system's part in one change, as far as it decides the steps.
type Abilities struct {
	Policy   Policy
	On       bool                           // it is wanted running
	Touches  func(providers.Edit) bool      // whether an edit changes its definition
	Wanted   []providers.Claim              // the claims that it holds once it is as wanted
	Shared   []providers.Claim              // further claims that it holds then, which others may hold, too
	Running  []providers.Claim              // further claims that a start takes
	Attached []providers.Claim              // what a redefinition takes beside while it runs
	Removing []providers.Claim              // the claims that its removal takes: nobody else may hold them
	Ready    string                         // the operation that waits until it is ready
	Change   time.Duration                  // how long a change of its definition may take
	Leaves   func(op, name string) []string // lists the remains that an operation may leave behind
	// WhenUp makes a restart wait until an object that is still starting is up: a stop
	// request is lost before that.
	WhenUp bool
	// StopWhenUp makes any stop wait so.
	StopWhenUp bool
	// ChecksFirst makes a stop that is followed by another definition check that one: the system
	// may refuse it.
	ChecksFirst bool

	// Steps of the system's own: before the object is taken down, once it is down, before its
	// definition is written, and once it is ready. Recipe fills in a missing address, ID and
	// name.
	First, Lowered, Written, Last []providers.Step
}

// Recipe returns the steps of a change of a VM. It is pure. The steps are in the order of
// their phases, each after the one before it. A step of its own frees the claims that another
// change takes (Change.Yields).
func Recipe(c providers.Change, a Abilities) []providers.Step {
	s := &sequence{change: c, Abilities: a}
	switch c.Action {
	case providers.Create:
		s.own(a.First)
		s.define()
		s.upIfWanted()
	case providers.Update, providers.Import:
		s.own(a.First)
		s.free()
		s.redefine()
		s.readyIfUnready()
	case providers.RestartIt:
		s.own(a.First)
		s.down()
		s.free()
		s.redefine()
		s.up()
	case providers.ReplaceIt:
		s.own(a.First)
		s.downIfOn()
		s.own(a.Lowered)
		s.remove()
		s.define()
		s.upIfWanted()
	case providers.Destroy:
		s.downIfOn()
		s.own(a.Lowered)
		s.remove()
	case providers.Start, providers.Recover:
		s.clear()
		s.own(a.Lowered)
		s.free()
		s.redefine()
		s.up()
	case providers.Stop:
		s.down()
		s.free()
		s.redefine()
	case providers.Forget: // remains of a VM that is gone may be there
		s.own(a.First)
		if c.Object != nil {
			s.addOld(Unmark(a.Change))
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.steps
}

// Unmark returns the step that removes the owner mark from an object, so that vmctl no longer
// manages it.
func Unmark(timeout time.Duration) providers.Step {
	return providers.Step{Op: OpUnmark, Phase: providers.PhaseTidy, Timeout: timeout}
}

// GiveKeys tells the steps that write the definition of a guest, or check it before, which keys it gets.
func GiveKeys(steps []providers.Step, which Keys) {
	for i := range steps {
		if args := ArgsOf(steps[i]); which != KeysKept && (steps[i].Op == OpRedefine || args.ThenRedefine) {
			args.Keys = which
			steps[i].Args = args
		}
	}
}

// sequence collects the steps of one change.
type sequence struct {
	Abilities
	change providers.Change
	steps  []providers.Step
}

// Append returns the steps of a change and one more, which runs after the last of them. It fills
// in the words for a known operation.
func Append(steps []providers.Step, c providers.Change, step providers.Step) []providers.Step {
	step.Address = c.Address
	if step.Class == "" {
		step.Class = providers.Contractual
	}
	if step.Risk == "" {
		step.Risk = providers.NoRisk
	}
	step.Imports = c.Imports()
	if step.Words == (providers.Words{}) {
		step.Words = Words(step.Op)
	}
	if len(steps) > 0 {
		step.After = []int{len(steps) - 1}
	}
	return append(steps, step)
}

// Name returns the name of the object that a change makes or keeps.
func Name(c providers.Change) string {
	if c.Object != nil && c.Action != providers.ReplaceIt {
		return c.Object.Name
	}
	return c.Name
}

// addOn adds a step on the object that the change makes or keeps; addOld adds one on the
// existing object.
func (s *sequence) addOn(step providers.Step) {
	step.Object, step.Name = s.change.ID, Name(s.change)
	s.add(step)
}

func (s *sequence) addOld(step providers.Step) {
	step.Object, step.Name = s.change.Object.ID, s.change.Object.Name
	s.add(step)
}

func (s *sequence) add(step providers.Step) {
	if s.Leaves != nil && step.Leaves == nil {
		step.Leaves = s.Leaves(step.Op, step.Name)
	}
	s.steps = Append(s.steps, s.change, step)
}

func (s *sequence) own(steps []providers.Step) {
	for _, step := range steps {
		switch {
		case step.Object != "":
			s.add(step)
		case step.Phase.Sinks() && s.change.Object != nil:
			s.addOld(step)
		default:
			s.addOn(step)
		}
	}
}

func (s *sequence) held() []providers.Claim {
	if s.change.Object == nil {
		return nil
	}
	return s.change.Object.Holds
}

// yielded returns the claims that a step of its own frees: other changes take them, and the
// object does not keep them.
func (s *sequence) yielded() []providers.Claim {
	return without(without(intersect(s.change.Yields, s.held()), s.Wanted), s.Shared)
}

// yieldedUp returns the claims that the object holds until it goes down and that other changes
// take.
func (s *sequence) yieldedUp() []providers.Claim {
	if s.change.Object == nil {
		return nil
	}
	return intersect(s.change.Yields, s.change.Object.HoldsUp)
}

// taken returns the claims that a start takes: those of the system, and those on host ports
// that an object which is off holds by its definition alone.
func (s *sequence) taken() []providers.Claim {
	if s.change.Object == nil || s.isOn() {
		return s.Running
	}
	notPort := func(c providers.Claim) bool { return c.Kind != providers.ClaimPort }
	return append(slices.DeleteFunc(intersect(s.Wanted, s.held()), notPort), s.Running...)
}

func (s *sequence) touched() bool {
	return s.change.Mark != nil || s.change.Rekey != nil || slices.ContainsFunc(s.change.Edits, s.Touches) || s.found(providers.FindPartial)
}

func (s *sequence) found(kind providers.FindingKind) bool { return Found(s.change.Object, kind) }

// TidyUp returns a step that removes the remains of the last run of an object that is off and stays
// off. A start or a deletion removes them by itself.
func TidyUp(o *providers.Object, op string, timeout time.Duration) []providers.Step {
	if o.State != providers.StateOff || !Found(o, providers.FindLeftover) {
		return nil
	}
	return []providers.Step{{Op: op, Phase: providers.PhaseRelease, Timeout: timeout, Args: Args{RunOnly: true}}}
}

// Found reports whether an object has a finding of that kind.
func Found(o *providers.Object, kind providers.FindingKind) bool {
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
}

func (s *sequence) define() {
	s.own(s.Written)
	s.addOn(providers.Step{Op: OpDefine, Phase: providers.PhaseMake, Timeout: s.Policy.Create, Takes: s.Wanted})
}

// redefine adds a step if an edit changes the definition, or if the definition is not whole.
func (s *sequence) redefine() {
	if !s.touched() {
		return
	}
	s.own(s.Written)
	takes := without(s.Wanted, s.held())
	if s.change.Action == providers.Update && s.isOn() {
		takes = append(takes, s.Attached...)
	}
	s.addOn(providers.Step{
		Op: OpRedefine, Phase: providers.PhaseChange, Timeout: s.Change,
		Frees: without(without(without(s.held(), s.Wanted), s.Shared), s.yielded()), Takes: takes,
	})
}

// free adds a step if another change takes claims that the object gives up. An object that
// runs keeps its claims.
func (s *sequence) free() {
	going := s.yielded()
	if len(going) == 0 || s.isOn() && len(s.steps) == 0 {
		return
	}
	s.addOld(providers.Step{Op: OpDetach, Phase: providers.PhaseFree, Timeout: s.Change, Frees: going})
}

func (s *sequence) isOn() bool {
	return s.change.Object.State != providers.StateOff
}

func (s *sequence) upIfWanted() {
	if s.On {
		s.up()
	}
}

func (s *sequence) up() {
	step := providers.Step{Op: OpStart, Phase: providers.PhaseUp, Timeout: s.Policy.Start, Takes: s.taken()}
	if len(s.yieldedUp()) > 0 {
		step.Args = Args{NewPorts: true}
	}
	s.addOn(step)
	s.ready()
}

func (s *sequence) ready() {
	if s.Policy.Wait {
		s.addOn(providers.Step{Op: s.Ready, Phase: providers.PhaseReady, Condition: condition.SSHReady, Timeout: s.Policy.Ready})
		s.own(s.Last)
	}
}

// readyIfUnready adds a wait for an object that runs, is to run, and was not ready yet.
func (s *sequence) readyIfUnready() {
	if o := s.change.Object; s.change.Unready && o != nil && o.Running != nil && *o.Running {
		s.ready()
	}
}

// down adds the step that stops the object.
func (s *sequence) down() {
	step := s.stopping(OpStop, providers.PhaseDown)
	if s.StopWhenUp || s.WhenUp && s.change.Action == providers.RestartIt {
		step.Timeout += s.Policy.Ready
		step.Args = Args{WhenUp: true}
	}
	ends := s.change.Action == providers.Destroy || s.change.Action == providers.ReplaceIt
	if s.ChecksFirst && !ends && s.touched() {
		args := ArgsOf(step)
		args.ThenRedefine = true
		step.Args = args
	}
	s.addOld(withSuccessor(step, s.change))
}

func (s *sequence) downIfOn() {
	if s.isOn() {
		s.down()
	}
}

// clear adds a step that takes down an object that is neither off nor running, unless a start
// alone makes it run again.
func (s *sequence) clear() {
	o := s.change.Object
	switch {
	case o.State == providers.StateOff || o.State == providers.StateRunning:
	case o.State == providers.StateBroken || s.found(providers.FindBroken):
		step := s.stopping(OpRecover, providers.PhaseRecover)
		s.addOld(step)
	case o.State == providers.StateEnding || s.touched() || len(s.yielded()) > 0:
		s.down()
	}
}

func (s *sequence) stopping(op string, phase providers.Phase) providers.Step {
	return providers.Step{
		Op: op, Phase: phase, Risk: providers.Downtime, Timeout: s.Policy.Grace + s.Policy.ForceWait + stopMargin, Frees: s.yieldedUp(),
	}
}

func (s *sequence) remove() {
	s.addOld(withSuccessor(providers.Step{
		Op: OpDelete, Phase: providers.PhaseRemove, Risk: providers.DataLoss, Timeout: s.Policy.Delete, Frees: s.held(), Takes: s.Removing,
	}, s.change))
}

// withSuccessor tells a step of a replacement that the change makes another object in its
// place, and the name and ID of that one if its name is another.
func withSuccessor(step providers.Step, c providers.Change) providers.Step {
	if c.Action != providers.ReplaceIt {
		return step
	}
	args := ArgsOf(step)
	args.ThenMake = true
	awaited := slices.ContainsFunc(c.Awaits, func(claim providers.Claim) bool { return claim.Kind == providers.ClaimName })
	if c.Name != c.Object.Name && !awaited {
		args.NextName, args.NextID = c.Name, c.ID
	}
	step.Args = args
	return step
}

func without(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return slices.Contains(these, c) })
}

func intersect(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return !slices.Contains(these, c) })
}
