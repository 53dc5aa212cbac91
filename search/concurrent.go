package search

import (
	"fmt"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// concurrentReader is another vmctl that plans without a lock at some moment of an apply.
type concurrentReader struct {
	after int // that many events of the executor; negative: never
	plan  func() error
	wrong error // the error of its plan
}

// onEvent counts an event of the executor, and plans at the chosen one.
func (g *concurrentReader) onEvent() {
	if g.after == 0 {
		g.wrong = g.plan()
	}
	g.after--
}

// readConcurrently lets another vmctl plan during a run, and checks that it gets a plan.
func (b *harness) readConcurrently(c *spec.Config, o planner.Options, snapshot func() *state.Snapshot) *concurrentReader {
	o.Held = true
	return &concurrentReader{after: b.planAfter, plan: func() error {
		_, world, err := planner.Make(b.ctx, b.open, c, snapshot(), o)
		if err != nil {
			return fmt.Errorf("no plan beside a run: %w", err)
		}
		b.total.concurrentPlans++
		return world.Close()
	}}
}

// applyOtherRun lets another vmctl apply its own edit of the spec, whole or cut short,
// between a plan that was saved and its apply.
func (b *harness) applyOtherRun(d *drawing) {
	b.t.Helper()
	mine := b.model
	theirs := *d
	theirs.m = d.m.clone()
	b.change(&theirs)
	b.drawFaults()
	b.say("another run, with faults %v, killed after %d entries:\n%s", b.faults, b.store.entries, b.model.hcl(""))
	b.count(b.apply(nil))
	b.total.overtakenPlans++
	b.faults, b.keepGoing, b.planAfter, b.store.entries, b.model = nil, false, -1, -1, mine
}
