package search

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/planner"
)

// LostState demands that an apply without the state, as from a fresh data directory, takes back all
// objects, also to the new addresses of moved blocks: nothing is made, replaced or removed.
func LostState(t *testing.T, host Host) { run(t, host, lostState) }

// lostState is one case of Lost.
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
	i := slices.IndexFunc(editTable, func(e editKind) bool { return e.class == class })
	before, moves := d.m.clone(), slices.Clone(d.moves)
	if !editTable[i].edit(d) || !d.m.valid() {
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
			if o := &system.Inventory.Objects[i]; planner.MarkingOf(o, project) == planner.Ours {
				objects = append(objects, fmt.Sprintf("%s %s", o.Kind, o.ID))
			}
		}
	}
	slices.Sort(objects)
	return objects, len(causes)
}
