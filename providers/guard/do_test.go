package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/guard"
	"vmctl/spec"
)

// step is one step on an object that a test describes.
type step struct {
	work    providers.Work
	now     *guard.Seen
	verb    guard.Verb
	refused error // of Verb
	looks   int
	ended   int
}

func (s *step) Guard() guard.Guard {
	return guard.Guard{Work: s.work, Project: providers.Project{Name: "lab", ID: "lab"}, Thing: "thing", Look: func(guard.Seen) string { return "look" }}
}

func (s *step) Look(context.Context) (*guard.Seen, error) {
	s.looks++
	return s.now, nil
}

func (s *step) Values(context.Context) (map[string]cty.Value, error) {
	return map[string]cty.Value{"id": cty.StringVal(string(s.now.ID))}, nil
}

func (s *step) Verb() (guard.Verb, error) { return s.verb, s.refused }

func (s *step) Begin(context.Context, providers.Work, providers.Log) (guard.Task, func() error, error) {
	return s, func() error { s.ended++; return nil }, nil
}

func (s *step) Failure(err error, format string, args ...any) *providers.Problem {
	return &providers.Problem{Outcome: providers.Failed, Code: "step", Err: fmt.Errorf(format+": %w", append(args, err)...)}
}

var mine = &providers.Mark{ID: "lab", Address: spec.Address{Kind: spec.VM, Name: "a"}, Of: "1"}

// newStep returns a step on an object whose fingerprint is "as it is".
func newStep(expect string, verb guard.Verb) *step {
	s := &step{now: &guard.Seen{ID: "1", Name: "one", Mark: mine, Fingerprint: "as it is"}, verb: verb}
	s.work.Op, s.work.Address, s.work.Object, s.work.Name, s.work.Expect = "change", mine.Address, "1", "one", expect
	return s
}

func TestRun(t *testing.T) {
	acts := func(context.Context) (*guard.Outcome, error) { return guard.Did(providers.Done, "it acted"), nil }
	is := func(is bool) func(context.Context) (*guard.Outcome, error) {
		return guard.If(func() bool { return is }, "it is so")
	}
	fails := func(context.Context) (*guard.Outcome, error) { return nil, errors.New("no luck") }
	for _, test := range []struct {
		name, expect string
		verb         guard.Verb
		change       func(*step)
		want         string
	}{
		{"it is as expected", "as it is", guard.Verb{Act: acts}, nil, "done [it acted] as it is gone=false"},
		{"its goal is true already, whatever was expected", "as it was", guard.Verb{Done: is(true), Act: fails}, nil, "already [it is so] as it is gone=false"},
		{"it was changed", "as it was", guard.Verb{Done: is(false), Act: acts}, nil, "stale_plan"},
		{"it is half made, and is completed", "", guard.Verb{Need: guard.Making, Act: acts}, nil, "done [it acted] as it is gone=false"},
		{"it was to be absent", "", guard.Verb{Need: guard.Expected, Act: acts}, nil, "stale_plan"},
		{"it is gone", "as it is", guard.Verb{Act: acts}, func(s *step) { s.now = nil }, "stale_plan"},
		{"it is gone, and was to go", "as it is", guard.Verb{Need: guard.Removing, Act: acts}, func(s *step) { s.now = nil }, "done [it acted]  gone=true"},
		{"it bears no mark, and was recorded as another", "as it is", guard.Verb{Act: acts}, func(s *step) { s.now.Mark = &providers.Mark{ID: "other"} }, "not_ours"},
		{"the act fails", "as it is", guard.Verb{Act: fails}, nil, "step"},
		{"the check fails", "as it is", guard.Verb{Act: acts, Check: func(context.Context) error { return errors.New("it is down") }}, nil, "step"},
		{"the step cannot be read", "as it is", guard.Verb{Act: acts}, func(s *step) { s.refused = errors.New("no such size") }, "step"},
		{
			"it is made later", "", guard.Verb{Need: guard.Expected, Act: func(context.Context) (*guard.Outcome, error) {
				return &guard.Outcome{How: providers.Done, NotGone: true}, nil
			}}, func(s *step) { s.now = nil }, "done []  gone=false",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStep(test.expect, test.verb)
			if test.change != nil {
				test.change(s)
			}
			r, err := guard.Run(t.Context(), s, s.work, nil)
			got := fmt.Sprintf("%s %v %s gone=%t", r.How, r.Evidence, r.Fingerprint, r.Gone)
			if problem := (*providers.Problem)(nil); errors.As(err, &problem) {
				got = problem.Code
			}
			if got != test.want || s.ended != 1 {
				t.Errorf("got %q, want %q; it ended %d times", got, test.want, s.ended)
			}
		})
	}
}

// What was done is reported though the time of the step is over.
func TestRunLooksAfterItsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newStep("as it is", guard.Verb{
		Act: func(context.Context) (*guard.Outcome, error) {
			cancel()
			return guard.Did(providers.Done), nil
		},
		Check: func(ctx context.Context) error { return ctx.Err() },
	})
	if r, err := guard.Run(ctx, s, s.work, nil); err != nil || r.How != providers.Done || s.looks != 2 {
		t.Errorf("%+v, %v, after %d looks", r, err, s.looks)
	}
}

// A step that panics keeps out no later step.
func TestRunEndsAfterAPanic(t *testing.T) {
	s := newStep("as it is", guard.Verb{Act: func(context.Context) (*guard.Outcome, error) { panic("a bug") }})
	err := providers.Contain(func() error {
		_, err := guard.Run(t.Context(), s, s.work, nil)
		return err
	})
	if panicked := (*providers.PanicError)(nil); !errors.As(err, &panicked) || s.ended != 1 {
		t.Errorf("%v; it ended %d times", err, s.ended)
	}
}
