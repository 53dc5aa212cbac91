package search

import (
	"testing"

	"pgregory.net/rapid"
)

// KillPoints kills an apply before each write of its journal, in so many fixed cases,
// and demands that two applies then converge (law 2). It returns how many kills there
// were.
func KillPoints(t *testing.T, host Host, cases int) int {
	t.Helper()
	dir := scratch(t, host)
	kills := 0
	for i := range cases {
		for writes := 0; ; writes++ {
			killed := false
			rapid.Custom(func(r *rapid.T) int {
				b := newHarness(t.Context(), t, host, dir)
				b.draw, b.total = r, newTally()
				killed = b.killAfter(writes)
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

// killAfter carries out an edit that is killed after so many writes, and the rest. It
// reports whether it was killed.
func (b *harness) killAfter(writes int) bool {
	b.t.Helper()
	d := b.drawing()
	d.base()
	b.model = d.m.clone()
	b.converge("first")
	b.change(d)
	b.say("apply, killed after %d writes:\n%s", writes, b.model.hcl(""))
	b.store.writes = writes
	out := b.apply(nil)
	b.store.writes = -1
	b.settle()
	return out.killed
}
