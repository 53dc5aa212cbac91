package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

func badName(name string) error {
	return fmt.Errorf("name = %q: a name begins with a letter or a digit, has letters, digits and . _ + = - only, and at most %d of them", name, nameLimit)
}

// isName reports whether a VM's file can have the name.
func isName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("._+=-", r)) {
			return false
		}
	}
	return name != "" && len(name) <= nameLimit
}

func (s *sequence) makes() bool {
	return s.change.Action == providers.Create || s.change.Action == providers.ReplaceIt
}

func (s *sequence) add(step providers.Step) {
	step.Address, step.Class = s.change.Address, providers.Contractual
	if step.Risk == "" {
		step.Risk = providers.NoRisk
	}
	if imports(s.change) {
		step.Args = withArg(step.Args, argImport)
	}
	if len(s.steps) > 0 {
		step.After = []int{len(s.steps) - 1}
	}
	s.steps = append(s.steps, step)
}

// imports reports whether an object that bears no mark is to get one.
func imports(c providers.Change) bool {
	return c.Object != nil && c.Object.Owner == nil && slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return e.Path == "mark" })
}

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

// disk is the claim on a VM's disk, which nobody but the VM may use.
func (s *sequence) disk(name string) []providers.Claim {
	if s.p.weightless {
		return nil
	}
	return []providers.Claim{lockClaim(name)}
}

// locks are the claims of a VM that runs on its root disk and on its others.
func (s *sequence) locks() []providers.Claim {
	all := s.disk(s.name())
	if s.p.weightless {
		return nil
	}
	for _, a := range s.want.Disks {
		all = append(all, diskLockClaim(a.Name))
	}
	return all
}

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

func (s *sequence) found(kind providers.FindingKind) bool {
	o := s.change.Object
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
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

func (s *sequence) held() []providers.Claim {
	if s.change.Object == nil {
		return nil
	}
	return s.change.Object.Holds
}

func (s *sequence) wanted() []providers.Claim {
	all := append([]providers.Claim{nameClaim(s.name())}, s.want.ports()...)
	for _, a := range s.want.Disks {
		if a.ID != "" {
			all = append(all, diskClaim(a.ID))
		}
	}
	return all
}

func excluding(all, these []providers.Claim) []providers.Claim {
	return without(all, func(c providers.Claim) bool { return slices.Contains(these, c) })
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
