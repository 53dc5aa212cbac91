package search

import (
	"fmt"

	"vmctl/planner"
	"vmctl/spec"
	"vmctl/state"
)

// concurrentReader is another vmctl that plans at some moment of an apply, and holds no lock.
type concurrentReader struct {
	after int // that many events of the executor; negative: never
	plan  func() error
	wrong error // the error of its plan
}

// hear counts an event of the executor, and plans at the chosen one.
func (g *concurrentReader) hear() {
	if g.after == 0 {
		g.wrong = g.plan()
	}
	g.after--
}

// readConcurrently lets another vmctl plan during a run: it gets a plan, whatever is half done by then.
func (b *bench) readConcurrently(c *spec.Config, o planner.Options, snapshot func() *state.Snapshot) *concurrentReader {
	o.Held = true
	return &concurrentReader{after: b.beside, plan: func() error {
		_, world, err := planner.Make(b.ctx, b.open, c, snapshot(), o)
		if err != nil {
			return fmt.Errorf("no plan beside a run: %w", err)
		}
		b.total.glances++
		return world.Close()
	}}
}

// overtaken lets another vmctl apply its own edit of the spec, whole or cut short,
// between a plan that was saved and its apply.
func (b *bench) overtaken(d *drawing) {
	b.t.Helper()
	mine := b.model
	theirs := *d
	theirs.m = d.m.clone()
	b.change(&theirs)
	b.goWrong()
	b.say("another run, with faults %v, killed after %d writes:\n%s", b.faults, b.memory.writes, b.model.hcl(""))
	b.count(b.apply(nil))
	b.total.overtaken++
	b.faults, b.keepOn, b.beside, b.memory.writes, b.model = nil, false, -1, -1, mine
}
