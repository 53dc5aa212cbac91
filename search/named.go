package search

import (
	"slices"
	"strings"
	"testing"
)

// Step is one apply of a named case.
type Step struct {
	Spec   string      // without the vmctl and the provider block
	Moves  [][2]string // of records, before: `state mv`
	Faults []Fault     // that strike
	Plan   []string    // the expected steps of the plan, as "operation address"; nil: any
	Fails  bool        // a fault ends it, and more is left to do
}

// Named applies specs one after the other, and demands that each apply keeps the laws: after one
// apply nothing is left.
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
