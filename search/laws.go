package search

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

// checkPlan checks laws 1, 4 and 8 on a plan before it is carried out.
func (b *harness) checkPlan(p *planner.Plan, w *planner.World) {
	b.t.Helper()
	for i := range p.Changes {
		c := &p.Changes[i]
		if c.Blocked != nil && !slices.ContainsFunc(planner.Causes(), func(row planner.CauseRow) bool { return row.Cause == c.Blocked.Cause }) {
			b.failf("1", "%s is blocked by %q, which is no cause of the table: %s", c.Address, c.Blocked.Cause, c.Blocked.Error())
		}
	}
	for i, s := range p.Steps {
		c := &p.Changes[s.Change]
		off := c.Change.Want != noValue && isToBeDown(c)
		stops := c.Kind == spec.Container && off // a live edit of its state
		switch {
		case c.Blocked != nil && s.Phase != providers.PhaseRelease && s.Phase != providers.PhaseResume: // it shares the fate of what it is inside of
			b.failf("1", "step %s of %s, which is blocked", s.Op, s.Address)
		case c.Action == providers.Update && !stops && (s.Phase == providers.PhaseDown || s.Phase == providers.PhaseRemove):
			b.failf("4", "%s is shown as live, and is %s", s.Address, s.Phase)
		case c.Action == providers.RestartIt && s.Phase == providers.PhaseRemove:
			b.failf("4", "%s is shown as a restart, and is removed", s.Address)
		case (s.Phase == providers.PhaseUp || s.Phase == providers.PhaseResume) && off:
			b.failf("4", "%s says running = false, and is started", s.Address)
		case s.Phase == providers.PhaseRemove && c.Want != nil && c.Action != providers.ReplaceIt && c.Action != providers.Destroy:
			b.failf("4", "%s is in the spec, and is removed by %s", s.Address, c.Action)
		}
		if s.Phase == providers.PhaseDown || s.Phase == providers.PhaseRemove {
			b.checkReleased(p, w, i)
		}
	}
}

// isToBeDown reports whether the object of a change is not to run once the change is carried out.
func isToBeDown(c *planner.Change) bool {
	if c.Kind == spec.Container {
		return text(c.Change.Want, "state") == "created"
	}
	return c.Kind != spec.Engine && !isTrue(c.Change.Want, "running")
}

// isOpen reports whether an object of a record was seen, and runs.
func isOpen(w *planner.World, r state.Record) bool {
	return slices.ContainsFunc(w.Systems(), func(s *planner.System) bool {
		return s.Inside == r.Inside && slices.ContainsFunc(s.Inventory.Objects, func(o providers.Object) bool {
			up := o.Running != nil && *o.Running || o.Kind == spec.Container && text(o.Attrs, "state") != "created"
			return o.Kind == r.Kind && string(o.ID) == r.ID && up
		})
	})
}

// isInside reports whether the records say that an address is inside of another one.
func isInside(s *state.Snapshot, a, outer spec.Address) bool {
	for range len(s.Records) {
		r, recorded := s.Records[a]
		if a = r.Inside; !recorded || a == (spec.Address{}) {
			return false
		}
		if a == outer {
			return true
		}
	}
	return false
}

// isLetGo reports whether a step lets go of the object of its change, removes it, or takes it down for its successor.
func isLetGo(c *planner.Change, s planner.Step) bool {
	return s.Phase == providers.PhaseRelease || s.Phase == providers.PhaseRemove || s.Phase == providers.PhaseDown && c.Action == providers.ReplaceIt
}

// checkReleased checks that a step that takes an object down waits for the release or the removal of
// all objects inside of it, the inner ones first: law 8.
func (b *harness) checkReleased(p *planner.Plan, w *planner.World, step int) {
	b.t.Helper()
	outer := p.Steps[step].Address
	for _, s := range p.Steps {
		child := &p.Changes[s.Change]
		if !slices.Contains(child.Around, outer) || !isLetGo(child, s) {
			continue
		}
		if !comesAfter(p, step, s.ID) {
			b.failf("8", "%s %s does not wait until %s is let go of", p.Steps[step].Op, outer, s.Address)
		}
	}
	o := p.Changes[p.Steps[step].Change].Object
	if o == nil || o.Running == nil || !*o.Running {
		return
	}
	for a, r := range b.store.snapshot.Records {
		if isInside(b.store.snapshot, a, outer) && !r.Reserved && isOpen(w, r) && !slices.ContainsFunc(p.Steps, func(s planner.Step) bool {
			return s.Address == a && isLetGo(&p.Changes[s.Change], s)
		}) {
			b.failf("8", "%s %s, and %s is not let go of", p.Steps[step].Op, outer, a)
		}
	}
}

// letGo returns the IDs of the objects that removed blocks let go of, and that no record names.
func (b *harness) letGo() map[string]bool {
	ids := map[string]bool{}
	for id := range b.store.snapshot.Forgotten {
		ids[id] = true
	}
	for _, r := range b.store.snapshot.Records {
		delete(ids, r.ID)
	}
	return ids
}

// unmanaged returns the objects that are not vmctl's.
func (b *harness) unmanaged(letGo map[string]bool) map[string]string {
	b.t.Helper()
	if b.host.Unmanaged == nil {
		return nil
	}
	all, err := b.host.Unmanaged(filepath.Join(b.dir, "world"), letGo)
	b.must(err)
	return all
}

// checkUnmanaged checks that the objects that are not vmctl's have not changed: law 3.
func (b *harness) checkUnmanaged(before map[string]string, letGo map[string]bool) {
	b.t.Helper()
	if diff := cmp.Diff(before, b.unmanaged(letGo)); diff != "" {
		b.failf("3", "what is not vmctl's was touched (-before +now):\n%s", diff)
	}
}

// goOn lets somebody go on with their work, after a plan was made and before it is carried out.
func (b *harness) goOn() {
	if !b.atWork {
		return
	}
	did, err := b.host.AtWork(filepath.Join(b.dir, "world"), func(limit int) int { return below(b.draw, limit, "of") })
	b.must(err)
	if did != "" {
		b.say("somebody, once the plan is made: %s", did)
		b.total.externalChanges["work at a desk, once the plan is made"]++
	}
}

// work returns the work at all desks, or that in which vmctl must see it.
func (b *harness) work(seen bool) map[string]string {
	b.t.Helper()
	if b.host.Work == nil {
		return nil
	}
	all, err := b.host.Work(filepath.Join(b.dir, "world"), seen)
	b.must(err)
	return all
}

// checkWork checks that no work is lost: law 9.
func (b *harness) checkWork(before map[string]string) {
	b.t.Helper()
	now := b.work(false)
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[what]; !there {
			b.failf("9", "the work %s at %s is lost", what, before[what])
		}
	}
}

// comesAfter reports whether a step comes after another one, directly or not.
func comesAfter(p *planner.Plan, step, other int) bool {
	return slices.ContainsFunc(p.Steps[step].After, func(id int) bool { return id == other || comesAfter(p, id, other) })
}

// onEvent checks that after a failure that stops the run only steps begin that bring up a VM that
// was taken down: law 5.
func (b *harness) onEvent(e executor.Event) {
	switch e.Kind {
	case executor.Halted:
		b.halted = true
	case executor.StepDone:
		if b.isDown(e.Step) && e.How != providers.NotNeeded {
			b.lowered[e.Step.Address] = true
		}
	case executor.StepStarted:
		if b.halted && !b.lowered[e.Step.Address] {
			b.broken = fmt.Sprintf("%s %s began after the run was stopped", e.Step.Op, e.Step.Address)
		}
	case executor.StepFailed:
		if e.Failure.Restored {
			b.restored[e.Step.Address] = true
		}
		b.halted = b.halted || !b.keepGoing
	case executor.StepProgress, executor.StepWaiting, executor.StepWarned, executor.ConditionChanged:
	}
}

// isDown reports whether a step of the present plan takes an object down. Of the steps that release, only those do that
// a step resumes.
func (b *harness) isDown(s planner.Step) bool {
	resumed := slices.ContainsFunc(b.plan.Steps, func(other planner.Step) bool {
		return other.Address == s.Address && other.Phase == providers.PhaseResume
	})
	return s.Phase == providers.PhaseDown || s.Phase == providers.PhaseRelease && resumed
}

// isUp reports whether a step of a phase brings an object up.
func isUp(p providers.Phase) bool { return p == providers.PhaseUp || p == providers.PhaseResume }

// checkDown checks that each object that was taken down is up again, or that the summary names it.
func (b *harness) checkDown(p *planner.Plan, s executor.Summary) {
	b.t.Helper()
	if b.broken != "" {
		b.failf("5", "%s", b.broken)
	}
	up := maps.Clone(b.restored)
	for _, r := range s.Done {
		if isUp(r.Step.Phase) {
			up[r.Step.Address] = true
		}
	}
	for _, r := range s.Done {
		c := &p.Changes[r.Step.Change]
		rises := slices.ContainsFunc(p.Steps, func(step planner.Step) bool { return step.Change == r.Step.Change && isUp(step.Phase) })
		if b.isDown(r.Step) && r.How != providers.NotNeeded && rises && !up[c.Address] && !slices.Contains(s.Down, c.Address) {
			b.failf("5", "%s was taken down, is not up again, and is not named", c.Address)
		}
	}
}

// checkDeterministic checks that the same inputs give the same plan, and that planning changes
// nothing: laws 6 and 7. It checks one plan in seven, or every plan if a guard is broken.
func (b *harness) checkDeterministic(p *planner.Plan, c *spec.Config, s *state.Snapshot, o planner.Options) {
	b.t.Helper()
	if b.plans++; b.plans%7 != 0 && b.host.Break == "" {
		return
	}
	before := b.footprint()
	second, world, err := planner.Make(b.ctx, b.open, c, s, o)
	if err != nil {
		b.failf("7", "planned again: %v", err)
	}
	b.must(world.Close())
	if diff := cmp.Diff(planText(p), planText(second)); diff != "" {
		b.failf("7", "planned again (-before +now):\n%s", diff)
	}
	if diff := cmp.Diff(before, b.footprint()); diff != "" {
		b.failf("6", "planning changed the world (-before +now):\n%s", diff)
	}
}

// footprint returns every file of the world, with its content.
func (b *harness) footprint() map[string]string {
	b.t.Helper()
	all := map[string]string{}
	if b.host.Traces != nil {
		all["traces"] = strings.Join(b.host.Traces(), "\n")
	}
	b.must(filepath.WalkDir(filepath.Join(b.dir, "world"), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!e.Type().IsRegular() || strings.HasSuffix(path, ".console.log")) { // a guest notes logins there
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > 1<<16 { // a disk: its size is what there is of it
			all[path] = fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
			return nil
		}
		content, readErr := os.ReadFile(path)
		all[path] = string(content)
		return errors.Join(err, readErr)
	}))
	return all
}

// planText returns a plan as text, byte for byte.
func planText(p *planner.Plan) string {
	var b strings.Builder
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "%s %s %s %q %v\n", c.Action, c.Address, c.Name, c.Reason, c.Blocked)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%d %s %s %s %v %v %v\n", s.ID, s.Phase, s.Op, s.Address, s.After, s.Frees, s.Takes)
	}
	for _, f := range p.Findings {
		fmt.Fprintf(&b, "%+v\n", f)
	}
	return b.String()
}
