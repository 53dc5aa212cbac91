package condition_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"vmctl/condition"
)

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func at(generation uint64, seconds int) condition.Stamp {
	return condition.Stamp{Generation: generation, At: start.Add(time.Duration(seconds) * time.Second), Producer: "tests"}
}

func reported(status condition.Status, generation uint64) condition.Condition {
	r := condition.Report{Type: "t", Status: status, Reason: "Why", Message: "words"}
	c, _ := condition.Set(nil).With(r, at(generation, 0)).Of("t")
	return c
}

// Each outcome for an older, the same and a newer generation. A true condition of generation 3 ends no wait for generation 4, and one
// that is false for good ends it at once, with its reason.
//
// row X06
// row E03
// row E02, of waits of each generation
func TestOutcomes(t *testing.T) {
	const target = 4
	terminal := reported(condition.False, 0)
	terminal.Terminal = true
	for _, test := range []struct {
		name               string
		c                  condition.Condition
		older, same, newer condition.Outcome
	}{
		{"true", reported(condition.True, 0), condition.Waiting, condition.Met, condition.Met},
		{"false", reported(condition.False, 0), condition.Waiting, condition.Waiting, condition.Waiting},
		{"false for good", terminal, condition.Waiting, condition.Failed, condition.Failed},
		{"unknown", reported(condition.Unknown, 0), condition.Waiting, condition.Waiting, condition.Waiting},
		{"not applicable", reported(condition.NotApplicable, 0), condition.Waiting, condition.Met, condition.Met},
		{"never reported", condition.Condition{}, condition.Waiting, condition.Waiting, condition.Waiting},
	} {
		for generation, want := range map[uint64]condition.Outcome{3: test.older, 4: test.same, 5: test.newer} {
			c := test.c
			c.Generation = generation
			if got := c.At(target); got != want || c.Satisfied(target) != (want == condition.Met) {
				t.Errorf("%s of generation %d: %s, satisfied %t; want %s", test.name, generation, got, c.Satisfied(target), want)
			}
			if c.Type == "" {
				continue
			}
			awaited, outcome := condition.Set{c}.Await(condition.Declared{Type: c.Type, Producer: "tests"}, target)
			if outcome != want || awaited.Reason != "Why" || awaited.Message != "words" {
				t.Errorf("a wait for %s of generation %d: %s, %s: %s; want %s with its reason", test.name, generation, outcome, awaited.Reason, awaited.Message, want)
			}
		}
	}
}

// row E01: a wait for a condition that nobody produces is over at once, whatever was reported before.
func TestAwait(t *testing.T) {
	s := condition.Set{}.With(condition.Report{Type: "lit", Status: condition.False, Reason: "Dark"}, at(3, 0))
	for _, test := range []struct {
		declared condition.Declared
		want     string
	}{
		{condition.Declared{Type: "lit", Producer: "tests"}, "false Dark: waiting"},
		{condition.Declared{Type: "lit"}, "not_applicable NoProducer: met"},
		{condition.Declared{Type: "sealed", Producer: "tests"}, "unknown NeverReported: waiting"},
	} {
		c, outcome := s.Await(test.declared, 7)
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, outcome); got != test.want {
			t.Errorf("%+v: %s; want %s", test.declared, got, test.want)
		}
	}
}

func reports() *rapid.Generator[condition.Report] {
	return rapid.Custom(func(t *rapid.T) condition.Report {
		return condition.Report{
			Type:     rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "type"),
			Status:   rapid.SampledFrom([]condition.Status{condition.True, condition.False, condition.Unknown, condition.NotApplicable}).Draw(t, "status"),
			Reason:   rapid.SampledFrom([]string{"", "One", "Two"}).Draw(t, "reason"),
			Terminal: rapid.Bool().Draw(t, "terminal"),
		}
	})
}

func sets() *rapid.Generator[condition.Set] {
	return rapid.Custom(func(t *rapid.T) condition.Set {
		var s condition.Set
		for _, r := range rapid.SliceOfN(reports(), 0, 6).Draw(t, "reports") {
			s = s.With(r, at(rapid.Uint64Range(0, 5).Draw(t, "generation"), rapid.IntRange(0, 60).Draw(t, "second")))
		}
		return s
	})
}

// row X06: satisfied is monotone: a later generation of the condition, or an earlier one of the wait, never
// makes a satisfied condition unsatisfied. A false, unknown or missing condition is never satisfied.
func TestSatisfiedIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, kind := sets().Draw(t, "set"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "type")
		target := rapid.Uint64Range(0, 6).Draw(t, "target")
		c, there := s.Of(kind)
		if c.Satisfied(target) && target > 0 && !c.Satisfied(target-1) {
			t.Fatalf("%+v is satisfied for %d, and not for the generation before", c, target)
		}
		later := c
		later.Generation++
		if c.Satisfied(target) && !later.Satisfied(target) {
			t.Fatalf("%+v is satisfied for %d, and would not be with a later generation", c, target)
		}
		if met := s.Satisfied(kind, target); met && (!there || c.Status != condition.True && c.Status != condition.NotApplicable) {
			t.Fatalf("%+v is satisfied", c)
		}
		if c.Terminal && (c.Status != condition.False || c.At(target) == condition.Met) {
			t.Fatalf("%+v is terminal, and %s", c, c.At(target))
		}
	})
}

// row X06: to stamp twice is to stamp once, the last transition moves with the status alone, and the generation
// of a condition never goes back.
func TestStamping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, r := sets().Draw(t, "set"), reports().Draw(t, "report")
		stamp := at(rapid.Uint64Range(0, 6).Draw(t, "generation"), rapid.IntRange(61, 90).Draw(t, "second"))
		before, _ := s.Of(r.Type)
		once := s.With(r, stamp)
		after, _ := once.Of(r.Type)
		again := stamp
		again.At = again.At.Add(time.Hour)
		if twice, _ := once.With(r, again).Of(r.Type); twice != after {
			t.Fatalf("stamped twice: %+v; once: %+v", twice, after)
		}
		if (before.Status == after.Status) != before.Since.Equal(after.Since) {
			t.Fatalf("%+v became %+v", before, after)
		}
		if after.Generation < before.Generation {
			t.Fatalf("generation %d after %d", after.Generation, before.Generation)
		}
		for _, c := range s {
			if now, _ := once.Of(c.Type); c.Type != r.Type && now != c {
				t.Fatalf("%+v became %+v by a report about %s", c, now, r.Type)
			}
		}
	})
}

// row E04: a change that concerns no condition confirms those that were satisfied before it, and no other.
func TestConfirm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, before := sets().Draw(t, "set"), rapid.Uint64Range(0, 5).Draw(t, "before")
		confirmed := s.Confirm(before, before+1)
		for i, c := range s {
			now := confirmed[i]
			if c.Satisfied(before) != now.Satisfied(before+1) && !c.Satisfied(before+1) {
				t.Fatalf("%+v became %+v by a change from generation %d", c, now, before)
			}
			now.Generation = c.Generation
			if now != c {
				t.Fatalf("%+v became %+v", c, confirmed[i])
			}
		}
	})
}

// row E09: each change at or above the awaited generation is news once.
func TestNews(t *testing.T) {
	var w condition.Watch
	var got []string
	tell := func(c condition.Condition) {
		if w.News(c, 4) {
			got = append(got, fmt.Sprintf("%s %s @%d", c.Type, c.Status, c.Generation))
		}
	}
	tell(reported(condition.False, 3))
	tell(reported(condition.Unknown, 4))
	tell(reported(condition.Unknown, 4))
	tell(reported(condition.Unknown, 5))
	tell(reported(condition.True, 5))
	if want := "[t unknown @4 t true @5]"; fmt.Sprint(got) != want {
		t.Errorf("told %v; want %s", got, want)
	}
}
