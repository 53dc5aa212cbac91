package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"vmctl/providers"
	"vmctl/spec"
)

// The operations of this provider's steps.
const (
	opDefine    = "define"
	opRedefine  = "redefine"
	opStart     = "start"
	opWaitReady = "wait_ready"
	opStop      = "stop"
	opRecover   = "recover"
	opDelete    = "delete"
	opUnlock    = "unlock" // free the disk from a holder that is gone
	opClear     = "clear"  // remove what is left of what is gone
	opGrow      = "grow"   // a disk
	opUpload    = "upload" // copy the image that a VM is made from
	opWrite     = "write"  // a file inside a guest
	opRemove    = "remove" // a file inside a guest
	opFlush     = "flush"  // let go of a file inside a guest that goes down
)

// Arguments of steps.
const (
	argWhenUp   = "when_up"   // stop: not before it is up, or had its time for that
	argThenMake = "then_make" // clear, delete: another is made in its place
	argKeep     = "keep"      // clear: the VM exists, and only its run is over
	argSource   = "source"    // upload: the file
	argImport   = "import"    // the object bears no mark yet, and is to get one
	yes         = "true"
)

// The arguments of a step that makes room for a replacement of another name:
// that name, and the ID of what will have it.
const (
	argNextName = "name"
	argNextID   = "id"
)

const (
	fileTimeout = time.Minute
	stopMargin  = 30 * time.Second // for looking
	nameLimit   = 200              // bytes, of a file's name
)

// Steps says how a change is made.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	switch c.Address.Kind {
	case spec.VM:
		return p.vmSteps(c)
	case spec.Disk:
		return p.diskSteps(c)
	case spec.GuestFile: // of the inside of a VM
		fallthrough
	default:
		panic("unknown kind " + string(c.Address.Kind))
	}
}

func (p *Provider) vmSteps(c providers.Change) ([]providers.Step, error) {
	s := &sequence{p: p, change: c, rules: rulesOf(c.Policy)}
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Address, err)
	}
	switch c.Action {
	case providers.Create:
		if c.Generation > 1 { // there was one before
			s.clear(providers.PhaseRelease, map[string]string{argThenMake: yes})
		}
		s.upload(providers.PhaseReserve)
		s.define()
		s.upIfWanted()
	case providers.Update, providers.Import:
		s.unlock()
		s.tidy()
		s.redefine()
	case providers.RestartIt:
		s.downWhenUp()
		s.redefine()
		s.up()
	case providers.ReplaceIt:
		s.upload(providers.PhaseRelease) // before anything is taken down: it may fail
		s.downIfOn()
		s.delete()
		s.define()
		s.upIfWanted()
	case providers.Destroy:
		s.downIfOn()
		s.delete()
	case providers.Start, providers.Recover:
		s.recover()
		s.unlock()
		s.redefine()
		s.up()
	case providers.Stop:
		s.down()
		s.redefine()
	case providers.Forget:
		if c.Object == nil {
			s.clear(providers.PhaseRemove, nil)
		}
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	return s.steps, nil
}

// sequence collects the steps of one change, each after the one before it.
type sequence struct {
	p      *Provider
	change providers.Change
	rules  rules
	want   config
	on     bool // wanted running
	steps  []providers.Step
}

func (s *sequence) read() error {
	switch s.change.Action {
	case providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		return nil
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop:
	}
	var err error
	if s.want, err = configOf(s.change.Want, s.change.Uses); err != nil {
		return err
	}
	s.on = flag(s.change.Want, "running")
	if s.makes() && !isName(s.change.Name) {
		return badName(s.change.Name)
	}
	return nil
}

func (s *sequence) makes() bool {
	return s.change.Action == providers.Create || s.change.Action == providers.ReplaceIt
}

func (s *sequence) add(step providers.Step) {
	s.steps = followedBy(s.steps, s.change, step)
}

// followedBy is the steps of a change with one more, which waits for the last of them.
func followedBy(steps []providers.Step, c providers.Change, step providers.Step) []providers.Step {
	step.Address, step.Class = c.Address, providers.Contractual
	if step.Risk == "" {
		step.Risk = providers.NoRisk
	}
	if imports(c) {
		step.Args = withArg(step.Args, argImport)
	}
	if len(steps) > 0 {
		step.After = []int{len(steps) - 1}
	}
	return append(steps, step)
}

// imports reports whether an object that bears no mark is to get one.
func imports(c providers.Change) bool {
	return c.Object != nil && c.Object.Owner == nil && slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return e.Path == "mark" })
}

// addOn adds a step on the object that the change has in the end.
func (s *sequence) addOn(step providers.Step) {
	step.Object, step.Name = s.change.ID, s.name()
	s.add(step)
}

func (s *sequence) name() string {
	if s.change.Object != nil && s.change.Action != providers.ReplaceIt {
		return s.change.Object.Name
	}
	return s.change.Name
}

// addOld adds a step on the object that is there before the change.
func (s *sequence) addOld(step providers.Step) {
	step.Object, step.Name = s.change.Object.ID, s.change.Object.Name
	if s.change.Action == providers.ReplaceIt && s.change.Name != step.Name {
		args := map[string]string{argNextName: s.change.Name, argNextID: string(s.change.ID)}
		maps.Copy(args, step.Args)
		step.Args = args
	}
	s.add(step)
}

func (s *sequence) found(kind providers.FindingKind) bool {
	o := s.change.Object
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
}

// without returns the elements of all that are not such.
func without[T any](all []T, such func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), such)
}

func withArg(args map[string]string, name string) map[string]string {
	all := map[string]string{name: yes}
	maps.Copy(all, args)
	return all
}
