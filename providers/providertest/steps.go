package providertest

import (
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// actions returns all actions of a plan.
func actions() []providers.Action {
	return []providers.Action{
		providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start,
		providers.Stop, providers.Adopt, providers.Forget, providers.Release, providers.Recover, providers.NoOp,
	}
}

// objects returns objects in every run state, whole and partial.
func (a *actor) objects() []*providers.Object {
	var all []*providers.Object
	for _, state := range []string{providers.StateRunning, providers.StatePaused, providers.StateBroken, providers.StateEnding, providers.StateOff} {
		for _, findings := range [][]providers.FindingKind{
			nil, {providers.FindBroken}, {providers.FindCrashed}, {providers.FindPartial}, {providers.FindLeftover}, {providers.FindBroken, providers.FindPartial},
		} {
			running := state == providers.StateRunning
			o := &providers.Object{
				Kind: spec.VM, ID: a.id, Name: a.name, State: state, Running: &running, Fingerprint: "f",
				Owner: &providers.Mark{ID: a.Settings.Project.Lineage(), Address: a.address, Of: a.id, Generation: 1},
				Attrs: cty.EmptyObjectVal, Holds: []providers.Claim{{Kind: "name", Key: a.name}},
			}
			for _, kind := range findings {
				o.Findings = append(o.Findings, providers.Finding{Kind: kind})
			}
			all = append(all, o)
		}
	}
	return all
}

func pure(s *stage) {
	dev := s.actor("dev")
	before := s.Traces()
	for _, action := range actions() {
		for _, o := range dev.objects() {
			for _, edited := range []bool{false, true} {
				c := providers.Change{
					Address: dev.address, Kind: spec.VM, Action: action, Name: dev.name, ID: dev.id, Object: o,
					Want: s.Want, Policy: s.Policy, Generation: 2,
				}
				switch action {
				case providers.Create:
					c.Object = nil
				case providers.Destroy:
					c.Want = cty.NilVal
				case providers.Forget:
					c.Object, c.Want = nil, cty.NilVal
				case providers.ReplaceIt:
					c.ID = "99999999-2222-8333-8444-555555555555"
				case providers.Update, providers.Import, providers.RestartIt, providers.Start, providers.Stop, providers.Adopt, providers.Release, providers.Recover, providers.NoOp:
				}
				if edited && c.Object != nil && c.Want != cty.NilVal {
					c.Edits = []providers.Edit{{Path: s.Edits[0].Path, After: s.Edits[0].Value}}
				}
				dev.checkSteps(c)
			}
		}
	}
	same(s.t, "planning", before, s.Traces())
}

// checkSteps checks that the steps of a change are well formed, and the same when they are
// asked for again.
func (a *actor) checkSteps(c providers.Change) {
	a.t.Helper()
	steps, again := a.steps(c), a.steps(c)
	if diff := cmp.Diff(steps, again); diff != "" {
		a.t.Errorf("%s: planned again the steps differ:\n%s", c.Action, diff)
	}
	a.checkSilence(c.Action, steps)
	state := "absent"
	switch {
	case c.Object != nil && c.Kind != spec.VM:
		state = providers.StateOff
	case c.Object != nil:
		state = c.Object.State
	}
	last := 0
	for i, step := range steps {
		phase := slices.Index(providers.Phases(), step.Phase)
		if phase < last {
			a.t.Errorf("%s of what is %s: phase %s of step %d comes too late", c.Action, state, step.Phase, i)
		}
		last = phase
		if step.Op == "" || step.Address != c.Address || step.Object == "" || step.Name == "" || step.Class == "" || step.Risk == "" || step.Timeout <= 0 {
			a.t.Errorf("%s of what is %s: step %d lacks something: %+v", c.Action, state, i, step)
		}
		for _, j := range step.After {
			if j < 0 || j >= i {
				a.t.Errorf("%s of what is %s: step %d comes after %d", c.Action, state, i, j)
			}
		}
		if i > 0 && len(step.After) == 0 {
			a.t.Errorf("%s of what is %s: step %d of one object waits for none before it", c.Action, state, i)
		}
		if want := riskOf(step.Phase); step.Risk != want && c.Action != providers.Forget {
			a.t.Errorf("%s of what is %s: the risk of phase %s is %q, and it is %q", c.Action, state, step.Phase, step.Risk, want)
		}
	}
	if state != "absent" && state != providers.StateOff && goesDown(c.Action) && !slices.ContainsFunc(steps, func(s providers.Step) bool {
		return s.Phase == providers.PhaseDown || s.Phase == providers.PhaseRecover
	}) {
		a.t.Errorf("%s of what is %s takes nothing down: %s", c.Action, state, phases(steps))
	}
	limbo := state == providers.StateBroken || state == providers.StateEnding
	if limbo && (c.Action == providers.Start || c.Action == providers.Recover) && (len(steps) == 0 || riskOf(steps[0].Phase) != providers.Downtime) {
		a.t.Errorf("%s of what is %s does not take it down first: %s", c.Action, state, phases(steps))
	}
}

// checkSilence checks that an action on the record alone has no step on an object. Remains of
// an object that is gone may be removed together with its record.
func (a *actor) checkSilence(action providers.Action, steps []providers.Step) {
	a.t.Helper()
	switch action {
	case providers.Adopt, providers.Release, providers.NoOp:
		if len(steps) > 0 {
			a.t.Errorf("%s has steps: %s", action, phases(steps))
		}
	case providers.Forget:
		if all := phases(steps); all != "" && all != string(providers.PhaseRemove) {
			a.t.Errorf("%s has steps: %s", action, all)
		}
	case providers.Create, providers.Update, providers.Import, providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Start, providers.Stop, providers.Recover:
	}
}

// riskOf returns the risk of a phase for somebody who uses the VM: to take it down is
// downtime, to remove it loses its disks.
func riskOf(p providers.Phase) providers.Risk {
	switch p {
	case providers.PhaseRecover, providers.PhaseDown:
		return providers.Downtime
	case providers.PhaseRemove:
		return providers.DataLoss
	case providers.PhasePrepare, providers.PhaseRelease, providers.PhaseFree, providers.PhaseReserve, providers.PhaseMake, providers.PhaseChange, providers.PhaseUp,
		providers.PhaseReady, providers.PhaseResume, providers.PhaseTidy:
		return providers.NoRisk
	}
	panic("unknown phase " + string(p))
}

func goesDown(action providers.Action) bool {
	switch action {
	case providers.RestartIt, providers.ReplaceIt, providers.Destroy, providers.Stop:
		return true
	case providers.Create, providers.Update, providers.Import, providers.Start, providers.Adopt, providers.Forget, providers.Release, providers.Recover, providers.NoOp:
		return false
	}
	panic("unknown action " + string(action))
}
