package machine

import (
	"maps"
	"slices"
	"time"

	"vmctl/providers"
	"vmctl/providers/guard"
)

// The operations of a recipe. A system may add some of its own.
const (
	OpDefine   = guard.OpDefine // make the object
	OpRedefine = "redefine"     // change its definition
	OpDetach   = "detach"       // take what the step frees out of its definition
	OpStart    = "start"
	OpStop     = "stop"    // request it to end, and force it if the policy says so
	OpRecover  = "recover" // end what runs of it and does not work
	OpDelete   = "delete"
	OpUnmark   = "unmark" // take the owner mark off the object, which stays as it is
)

// The arguments of the steps of a recipe.
const (
	// ArgImport says that the object bears no mark yet and gets one: it may be acted
	// on before.
	ArgImport = guard.ArgImport
	// ArgWhenUp says that an object that is still starting is not taken down before it
	// is up, or had its time for that.
	ArgWhenUp = "when_up"
	// ArgNextName and ArgNextID are the name and the ID of what replaces the object
	// under another name, which has to be free already.
	ArgNextName = "name"
	ArgNextID   = "id"
	// ArgThenMake says of a removal that another is made in the object's place.
	ArgThenMake = "then_make"

	yes = "true"
)

// stopMargin is what a system is given for its own answers, beyond the grace of a
// stop.
const stopMargin = 30 * time.Second

// Abilities is what a system says of one change, as far as it decides the steps.
type Abilities struct {
	Policy   Policy
	On       bool                           // it is wanted running
	Touches  func(providers.Edit) bool      // whether an edit changes its definition
	Wanted   []providers.Claim              // what it holds once it is as wanted
	Running  []providers.Claim              // what a start takes beside
	Removing []providers.Claim              // what its removal takes: nobody else may hold it
	Ready    string                         // the operation that waits until it is ready
	Change   time.Duration                  // how long a change of its definition may take
	Leaves   func(op, name string) []string // what an operation may leave behind
	// WhenUp lets a restart wait for one that is still starting: a request is lost
	// then.
	WhenUp bool

	// Steps of the system's own: before anything is taken down, once it is down, before
	// its definition is written, and once it is ready. Address, ID and name are filled
	// in where they are missing.
	First, Lowered, Written, Last []providers.Step
}

// Recipe says in which steps a change of a VM is made. It is pure. The steps are in
// the order of their phases, each after the one before it. A claim that another
// change takes (Change.Yields) is freed by a step of its own.
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
	case providers.Forget: // what belonged to it may be there, if it is gone
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

// Unmark is the step that lets go of an object for good: nobody's mark is on it
// afterwards.
func Unmark(timeout time.Duration) providers.Step {
	return providers.Step{Op: OpUnmark, Phase: providers.PhaseTidy, Timeout: timeout}
}

// sequence collects the steps of one change.
type sequence struct {
	Abilities
	change providers.Change
	steps  []providers.Step
}

// Append returns the steps of a change with one more, which waits for the last of
// them.
func Append(steps []providers.Step, c providers.Change, step providers.Step) []providers.Step {
	step.Address = c.Address
	if step.Class == "" {
		step.Class = providers.Contractual
	}
	if step.Risk == "" {
		step.Risk = providers.NoRisk
	}
	if Imports(c) {
		args := map[string]string{ArgImport: yes}
		maps.Copy(args, step.Args)
		step.Args = args
	}
	if len(steps) > 0 {
		step.After = []int{len(steps) - 1}
	}
	return append(steps, step)
}

// Imports reports whether a change gives its mark to an object that bears none.
func Imports(c providers.Change) bool {
	return c.WritesMark() && c.Object.Owner == nil
}

// Name is the name of the object that a change has in the end.
func Name(c providers.Change) string {
	if c.Object != nil && c.Action != providers.ReplaceIt {
		return c.Object.Name
	}
	return c.Name
}

// addOn adds a step on the object that the change has in the end, addOld one on the
// object that is there before.
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

// yielded are the claims that a step of its own frees: those that another change
// takes, and that the object does not keep.
func (s *sequence) yielded() []providers.Claim {
	return without(intersect(s.change.Yields, s.held()), s.Wanted)
}

func (s *sequence) touched() bool {
	return slices.ContainsFunc(s.change.Edits, s.Touches) || s.found(providers.FindPartial)
}

func (s *sequence) found(kind providers.FindingKind) bool { return Found(s.change.Object, kind) }

// Found reports whether a finding of a kind is about an object.
func Found(o *providers.Object, kind providers.FindingKind) bool {
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
}

func (s *sequence) define() {
	s.own(s.Written)
	s.addOn(providers.Step{Op: OpDefine, Phase: providers.PhaseMake, Timeout: s.Policy.Create, Takes: s.Wanted})
}

// redefine is there if an edit reaches the definition, or if that is not whole.
func (s *sequence) redefine() {
	if !s.touched() {
		return
	}
	s.own(s.Written)
	s.addOn(providers.Step{
		Op: OpRedefine, Phase: providers.PhaseChange, Timeout: s.Change,
		Frees: without(without(s.held(), s.Wanted), s.yielded()), Takes: without(s.Wanted, s.held()),
	})
}

// free is there if another change takes what the object lets go of. What runs lets go
// of nothing.
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
	s.addOn(providers.Step{Op: OpStart, Phase: providers.PhaseUp, Timeout: s.Policy.Start, Takes: s.Running})
	s.ready()
}

func (s *sequence) ready() {
	if s.Policy.Wait {
		s.addOn(providers.Step{Op: s.Ready, Phase: providers.PhaseReady, Timeout: s.Policy.Ready})
		s.own(s.Last)
	}
}

// readyIfUnready waits for what runs, is to run, and was not ready yet.
func (s *sequence) readyIfUnready() {
	if o := s.change.Object; s.change.Unready && o != nil && o.Running != nil && *o.Running {
		s.ready()
	}
}

// down takes the object down.
func (s *sequence) down() {
	step := s.stopping(OpStop, providers.PhaseDown)
	if s.WhenUp && s.change.Action == providers.RestartIt {
		step.Timeout += s.Policy.Ready
		step.Args = map[string]string{ArgWhenUp: yes}
	}
	s.addOld(withSuccessor(step, s.change))
}

func (s *sequence) downIfOn() {
	if s.isOn() {
		s.down()
	}
}

// clear takes down what is neither off nor running, unless going on is all that it
// needs.
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
	return providers.Step{Op: op, Phase: phase, Risk: providers.Downtime, Timeout: s.Policy.Grace + s.Policy.ForceWait + stopMargin}
}

func (s *sequence) remove() {
	s.addOld(withSuccessor(providers.Step{
		Op: OpDelete, Phase: providers.PhaseRemove, Risk: providers.DataLoss, Timeout: s.Policy.Delete, Frees: s.held(), Takes: s.Removing,
	}, s.change))
}

// withSuccessor tells a step of a replacement that another is made in the object's
// place, and which one where that has another name.
func withSuccessor(step providers.Step, c providers.Change) providers.Step {
	if c.Action != providers.ReplaceIt {
		return step
	}
	args := map[string]string{ArgThenMake: yes}
	awaited := slices.ContainsFunc(c.Awaits, func(claim providers.Claim) bool { return claim.Kind == providers.ClaimName })
	if c.Name != c.Object.Name && !awaited {
		args[ArgNextName], args[ArgNextID] = c.Name, string(c.ID)
	}
	maps.Copy(args, step.Args)
	step.Args = args
	return step
}

func without(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return slices.Contains(these, c) })
}

func intersect(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return !slices.Contains(these, c) })
}
