package libvirt

import (
	"cmp"
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
	opDefine   = "define"
	opRedefine = "redefine"
	opStart    = "start"
	opWaitSSH  = "wait_ssh"
	opStop     = "stop"
	opRecover  = "recover"
	opDelete   = "delete"
	opDetach   = "detach"
	opUnkey    = "unkey"
)

// The arguments of a step that makes room for a replacement of another name:
// that name, and the ID of what will have it.
const (
	argNextName = "name"
	argNextID   = "id"
)

// argTake is the argument of every step of a change that gives an object its first
// mark: it is ours from then on, and may be acted on before.
const (
	argTake = "take"
	taken   = "unmarked"
)

// takes reports whether a change takes over an object that nobody has marked.
func takes(c providers.Change) bool {
	return c.Object != nil && c.Object.Owner == nil && slices.ContainsFunc(c.Edits, func(e providers.Edit) bool { return e.Path == "mark" })
}

// argsOf are the arguments of a step of a change.
func argsOf(c providers.Change, args map[string]string) map[string]string {
	if !takes(c) {
		return args
	}
	all := map[string]string{argTake: taken}
	maps.Copy(all, args)
	return all
}

// argDisks is the argument of opDetach: the IDs of the disks, a line each.
const argDisks = "disks"

const (
	defineTimeout = 10 * time.Minute // uploads a kernel and an initial RAM disk
	deleteTimeout = 2 * time.Minute
	unkeyTimeout  = time.Minute
	stopMargin    = 30 * time.Second // for libvirt's own answers
)

// Steps says how a change is made.
func (p *Provider) Steps(c providers.Change) ([]providers.Step, error) {
	if c.Kind == spec.Disk {
		return p.diskSteps(c)
	}
	s := &sequence{p: p, change: c, rules: rulesOf(c.Policy), limits: limitsOf(c.Policy)}
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Address, err)
	}
	switch c.Action {
	case providers.Create:
		s.define()
		s.upIfWanted()
	case providers.Update, providers.Import:
		s.detach()
		s.redefine()
		s.readyIfFound()
	case providers.RestartIt:
		s.detach()
		s.stop()
		s.redefine()
		s.up()
	case providers.ReplaceIt:
		s.stopIfOn()
		s.delete()
		s.define()
		s.upIfWanted()
	case providers.Destroy:
		s.stopIfOn()
		s.delete()
	case providers.Start, providers.Recover:
		if !s.broken() {
			s.detach()
		}
		s.clear()
		s.redefine()
		s.up()
	case providers.Stop:
		s.detach()
		s.stop()
		s.redefine()
	case providers.Forget:
		s.delete() // the domain is gone; its volumes and keys may not be
	case providers.Adopt, providers.Release, providers.NoOp:
	default:
		panic("unknown action " + string(c.Action))
	}
	if no := s.refusal(); no != nil {
		return nil, no
	}
	return s.steps, nil
}

// sequence collects the steps of one change, each after the one before it.
type sequence struct {
	p      *Provider
	change providers.Change
	rules  rules
	limits limits
	want   machine
	steps  []providers.Step
	freed  []providers.Claim // by steps before the one that changes the domain
}

// read takes the wanted machine from a change that makes or changes something,
// and refuses what QEMU could never do.
func (s *sequence) read() error {
	switch s.change.Action {
	case providers.Destroy, providers.Adopt, providers.Forget, providers.Release, providers.NoOp:
		return nil
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Start, providers.Recover, providers.Stop:
	}
	want, err := machineOf(s.change.Want)
	if err != nil {
		return err
	}
	s.want = want
	if !s.makes() {
		return nil
	}
	if bootless(s.change.Want) {
		return fmt.Errorf("nothing to boot: write boot { kernel = \"…\" }")
	}
	if !namePattern.MatchString(s.change.Name) {
		return fmt.Errorf("name = %q: a name begins with a letter or a digit and has letters, digits and . _ + = - only", s.change.Name)
	}
	return nil
}

func (s *sequence) makes() bool {
	return s.change.Action == providers.Create || s.change.Action == providers.ReplaceIt
}

func (s *sequence) add(step providers.Step) {
	step.Address, step.Args = s.change.Address, argsOf(s.change, step.Args)
	if step.Class == "" {
		step.Class = providers.Contractual
	}
	if step.Risk == "" {
		step.Risk = providers.NoRisk
	}
	if len(s.steps) > 0 {
		step.After = []int{len(s.steps) - 1}
	}
	s.steps = append(s.steps, step)
}

func (s *sequence) define() {
	s.add(providers.Step{
		Op: opDefine, Phase: providers.PhaseMake, Object: s.change.ID, Name: s.change.Name, Timeout: s.limits.Create,
		Takes: s.wantedClaims(),
		Leaves: []string{
			fmt.Sprintf("domain %s (%s) at %s", s.change.Name, s.change.ID, s.p.place.URI),
			s.volumes(s.change.Name),
			"keys in " + s.p.keyFolder(s.change.Name),
		},
	})
}

// volumes names the files of an object.
func (s *sequence) volumes(name string) string {
	if s.want.Image == nil {
		return fmt.Sprintf("volumes %s.kernel-*, %s.initrd-*", name, name)
	}
	return fmt.Sprintf("volumes %s%s, %s%s*, %s*", name, rootPart, name, seedPart, s.p.imagePrefix())
}

// redefine is there if an edit reaches the domain, or if somebody took its
// configuration away.
func (s *sequence) redefine() {
	if !slices.ContainsFunc(s.change.Edits, touches) && !s.found(providers.FindPartial) {
		return
	}
	s.addOn(providers.Step{
		Op: opRedefine, Phase: providers.PhaseChange, Timeout: defineTimeout,
		Frees: without(without(s.heldClaims(), s.wantedClaims()), s.freed), Takes: without(s.wantedClaims(), s.heldClaims()),
		Leaves: []string{s.volumes(s.name())},
	})
}

// touches reports whether an edit changes the domain. Who logs in, and how that
// is checked, is between vmctl and the guest; the same bytes under another path
// are the same boot files.
func touches(e providers.Edit) bool {
	if strings.HasPrefix(e.Path, "restart_triggers.") {
		return false
	}
	switch e.Path {
	case "running", "ssh.user", "ssh.host_key", "boot.kernel", "boot.initrd", "restart_triggers":
		return false
	default:
		return true
	}
}

func (s *sequence) upIfWanted() {
	if s.want.Running {
		s.up()
	}
}

func (s *sequence) up() {
	s.addOn(providers.Step{
		Op: opStart, Phase: providers.PhaseUp, Timeout: s.rules.StartTimeout,
		Leaves: []string{fmt.Sprintf("domain %s running", s.name())},
	})
	if s.rules.Wait {
		s.addOn(providers.Step{Op: opWaitSSH, Phase: providers.PhaseReady, Timeout: s.rules.WaitTimeout})
	}
	if s.rules.Wait && s.want.Image != nil {
		s.addOn(providers.Step{
			Op: opUnkey, Phase: providers.PhaseTidy, Class: providers.Diagnostic, Timeout: unkeyTimeout,
			Leaves: []string{fmt.Sprintf("volumes %s%s*", s.name(), seedPart)},
		})
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
	step.Args = s.successor()
	s.add(step)
}

// successor tells a step of a replacement of another name who comes after it.
func (s *sequence) successor() map[string]string {
	if s.change.Action != providers.ReplaceIt || s.change.Name == s.change.Object.Name {
		return nil
	}
	return map[string]string{argNextName: s.change.Name, argNextID: string(s.change.ID)}
}

func (s *sequence) stop() {
	s.addOld(providers.Step{
		Op: opStop, Phase: providers.PhaseDown, Risk: providers.Downtime,
		Timeout: s.rules.Grace + s.rules.ForceWait + stopMargin, Frees: s.lettingGo(),
	})
}

func (s *sequence) stopIfOn() {
	if s.change.Object.State != providers.StateOff {
		s.stop()
	}
}

// clear takes down what is neither off nor running, where a resume is not what
// it needs.
func (s *sequence) clear() {
	o := s.change.Object
	switch {
	case o.State == providers.StateOff || o.State == providers.StateRunning:
	case s.broken():
		s.addOld(providers.Step{
			Op: opRecover, Phase: providers.PhaseRecover, Risk: providers.Downtime, Timeout: s.rules.ForceWait + stopMargin,
		})
	case o.State == providers.StateEnding || slices.ContainsFunc(s.change.Edits, touches):
		s.stop()
	}
}

// broken reports whether something runs that hears no request.
func (s *sequence) broken() bool {
	o := s.change.Object
	return o != nil && o.State != providers.StateOff && (o.State == providers.StateBroken || s.found(providers.FindBroken))
}

func (s *sequence) found(kind providers.FindingKind) bool {
	o := s.change.Object
	return o != nil && slices.ContainsFunc(o.Findings, func(f providers.Finding) bool { return f.Kind == kind })
}

// delete removes the domain with its volumes and keys, or what is left of them
// where the domain is gone.
func (s *sequence) delete() {
	step := providers.Step{
		Op: opDelete, Phase: providers.PhaseRemove, Timeout: s.limits.Delete, Frees: s.heldClaims(),
		Object: s.change.ID, Name: s.change.Name,
	}
	if o := s.change.Object; o != nil { // of what is gone there is nothing left to lose
		step.Object, step.Name, step.Risk, step.Args = o.ID, o.Name, providers.DataLoss, s.successor()
	}
	step.Leaves = []string{s.volumes(step.Name)}
	s.add(step)
}

func (s *sequence) heldClaims() []providers.Claim {
	if s.change.Object == nil {
		return nil
	}
	return s.change.Object.Holds
}

func (s *sequence) wantedClaims() []providers.Claim {
	all := []providers.Claim{nameClaim(s.p.place.URI, s.name())}
	if s.want.Image != nil {
		all = append(all, rootClaim(s.p.place.URI, s.name()))
	}
	for _, f := range s.want.Forwards {
		if f.fixed() {
			all = append(all, f.claim())
		}
	}
	for _, a := range s.want.Disks {
		if used, ok := s.change.Uses[a]; ok {
			all = append(all, diskClaim(used.ID))
		}
	}
	slices.SortFunc(all[1:], func(a, b providers.Claim) int {
		return cmp.Or(strings.Compare(b.Kind, a.Kind), strings.Compare(a.Key, b.Key))
	})
	return all
}

func without(all, these []providers.Claim) []providers.Claim {
	return slices.DeleteFunc(slices.Clone(all), func(c providers.Claim) bool { return slices.Contains(these, c) })
}
