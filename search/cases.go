package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/planner"
	"vmctl/spec"
)

// KillPoints kills an apply before each entry of its journal, in a fixed number of cases, and
// checks that two applies then converge (law 2). It returns the number of kills.
func KillPoints(t *testing.T, host Host, cases int) int {
	t.Helper()
	dir := scratch(t, host)
	kills := 0
	for i := range cases {
		for entries := 0; ; entries++ {
			killed := false
			rapid.Custom(func(r *rapid.T) int {
				b := newHarness(t.Context(), t, host, dir)
				b.draw, b.total = r, newTally()
				killed = b.killAfter(entries)
				return 0
			}).Example(i)
			if !killed {
				break
			}
			kills++
		}
	}
	return kills
}

// LostState checks that an apply without the state, as from a fresh data directory, adopts all
// objects, also at the new addresses of moved blocks: it makes, replaces and removes nothing.
func LostState(t *testing.T, host Host) { run(t, host, lostState) }

// Step is one apply of a named case.
type Step struct {
	Spec   string      // without the vmctl and the provider block
	Moves  [][2]string // of records, before: `state mv`
	Faults []Fault     // that strike
	Plan   []string    // the expected steps of the plan, as "operation address"; nil: any
	Fails  bool        // a fault ends it, and more is left to do
}

// Named applies specs one after the other, and checks that each apply keeps the laws and leaves
// nothing to do.
func Named(t *testing.T, host Host, steps ...Step) {
	t.Helper()
	b := newHarness(t.Context(), t, host, scratch(t, host))
	b.total = newTally()
	for _, s := range steps {
		b.spec, b.faults, b.faultless = s.Spec, s.Faults, len(s.Faults) == 0
		b.say("apply:\n%s", s.Spec)
		b.moveRecords(s.Moves)
		if s.Plan != nil {
			planned, _, world := b.left()
			b.must(world.Close())
			if got := stepsOf(planned); !slices.Equal(got, s.Plan) {
				t.Errorf("the plan of\n%s\nhas the steps\n%s\nand was to have\n%s", s.Spec, strings.Join(got, "\n"), strings.Join(s.Plan, "\n"))
			}
		}
		out := b.apply(nil)
		if out.ok == s.Fails || len(out.blocked) > 0 {
			t.Fatalf("the apply went well: %t, and was to: %t; blocked: %v\n%s", out.ok, !s.Fails, out.blocked, strings.Join(b.log, "\n"))
		}
		b.faults, b.faultless = nil, true
		if left, blocked, world := b.left(); !s.Fails && len(left)+len(blocked) > 0 {
			t.Errorf("after one apply of\n%s\nthere is left:\n%s\n%v", s.Spec, texts(left), blocked)
		} else {
			b.must(world.Close())
		}
	}
}

// killAfter carries out an edit that is killed after so many entries of its journal, and the rest. It
// reports whether it was killed.
func (b *harness) killAfter(entries int) bool {
	b.t.Helper()
	d := b.drawing()
	d.base()
	b.model = d.m.clone()
	b.converge("first")
	b.change(d)
	b.say("apply, killed after %d entries:\n%s", entries, b.model.hcl(""))
	b.store.entries = entries
	out := b.apply(nil)
	b.store.entries = -1
	b.settle()
	return out.killed
}

// lostState is one case of LostState.
func lostState(b *harness) {
	d := b.drawing()
	d.base()
	b.model = d.m.clone()
	b.converge("first")
	for range below(b.draw, 3, "rounds") {
		b.change(d)
		b.converge("edit")
		d.m = d.m.settled()
	}
	before, blocked := b.identities()
	if blocked > 0 { // an object that is still to go would be an orphan
		return
	}
	b.say("the state is lost")
	b.store = newMemory(project.ID, project.Name)
	if below(b.draw, 2, "moved") == 0 {
		d.edit("moved")
	}
	b.model = d.m.clone()
	b.total.cases++
	b.converge("without it")
	after, _ := b.identities()
	if diff := cmp.Diff(before, after); diff != "" {
		b.failf("X15", "the objects (-before +after the state was lost):\n%s", diff)
	}
}

// edit tries an edit of one class, and keeps it if it is valid.
func (d *drawing) edit(class string) {
	all := d.m.allEdits()
	i := slices.IndexFunc(all, func(e editKind) bool { return e.class == class })
	before, moves := d.m.clone(), slices.Clone(d.moves)
	if !all[i].edit(d) || !d.m.valid() {
		d.m, d.moves = before, moves
	}
}

// identities lists the objects that bear our mark, and counts the changes that are blocked.
func (b *harness) identities() (objects []string, blocked int) {
	b.t.Helper()
	_, causes, world := b.left()
	defer func() { b.must(world.Close()) }()
	objects = []string{}
	for _, system := range world.Systems() {
		for i := range system.Inventory.Objects {
			if o := &system.Inventory.Objects[i]; planner.MarkingOf(o, project) == planner.Ours && o.Kind != spec.Engine && o.Kind != spec.Image { // their records are the ownership
				objects = append(objects, fmt.Sprintf("%s %s", o.Kind, o.ID))
			}
		}
	}
	slices.Sort(objects)
	return objects, len(causes)
}

// stepsOf returns the steps among leftovers.
func stepsOf(left []leftover) []string {
	var all []string
	for _, l := range left {
		if l.step != "" {
			all = append(all, l.step)
		}
	}
	return all
}
