package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

const conditioned = `vm "a" {
  memory = "256MiB"
  lifecycle {
    precondition {
      condition     = vm.b.memory == "256MiB"
      error_message = "b has ${vm.b.memory}"
    }
    postcondition {
      condition     = self.address == "127.0.0.1"
      error_message = "a is at ${self.address}"
    }
  }
}
vm "b" {
  memory = "256MiB"
}
vm "c" {
  depends_on = [vm.a]
}
check "b" {
  assert {
    condition     = vm.b.memory == "256MiB" && vm.a.address != "10.0.0.1"
    error_message = "c is slow"
  }
}
`

// judged lists the blocked changes, the findings and the conditions that do not pass.
func judged(p *planner.Plan) string {
	var lines []string
	for _, c := range p.Changes {
		if c.Blocked != nil {
			lines = append(lines, fmt.Sprintf("%s %s: %s", c.Address, c.Blocked.Cause, c.Blocked.Error()))
		}
	}
	for _, f := range p.Findings {
		if f.Kind == providers.FindCheck {
			lines = append(lines, fmt.Sprintf("finding %s: %s", f.Address, strings.Join(f.Evidence, "; ")))
		}
	}
	for _, c := range p.Checks {
		if c.Status != spec.CheckPasses {
			lines = append(lines, fmt.Sprintf("%s is %s", c, c.Status))
		}
	}
	return strings.Join(lines, "\n")
}

func TestConditionsBlockChangesAndChecksAreFindings(t *testing.T) {
	address := func(s *scene, text string) {
		m := s.object().Attrs.AsValueMap()
		m["address"] = cty.StringVal(text)
		s.object().Attrs = cty.ObjectVal(m)
	}
	bigger := strings.Replace(conditioned, "vm \"b\" {\n  memory = \"256MiB\"", "vm \"b\" {\n  memory = \"512MiB\"", 1)
	edited := strings.Replace(conditioned, "256MiB", "512MiB", 1)
	for _, test := range []struct {
		name, spec string
		change     func(*scene)
		want       string
	}{
		{name: "they hold", spec: conditioned},
		{
			name: "a precondition", spec: bigger,
			want: "vm.a precondition: its precondition does not hold: b has 512MiB\n" +
				"finding check.b: c is slow\ncheck.b is fail\nthe precondition of vm.a is fail",
		},
		{name: "a destruction asks none", spec: bigger, change: func(s *scene) { s.options.Destroy = true }},
		{name: "nor does a stop", spec: bigger, change: func(s *scene) { s.options.Running = map[spec.Address]bool{{Kind: spec.VM, Name: "a"}: false} }},
		{
			name: "what is out of scope is not blocked", spec: bigger,
			change: func(s *scene) {
				s.options.Scope = planner.Scope{Targets: []spec.Address{{Kind: spec.VM, Name: "b"}}}
			},
			want: "finding check.b: c is slow\nfinding vm.a: precondition: b has 512MiB\ncheck.b is fail\nthe precondition of vm.a is fail",
		},
		{
			name: "a postcondition of what does not change", spec: conditioned, change: func(s *scene) { address(s, "10.0.0.2") },
			want: "vm.a postcondition: its postcondition does not hold: a is at 10.0.0.2\nthe postcondition of vm.a is fail",
		},
		{
			name: "a postcondition of what changes", spec: edited, change: func(s *scene) { address(s, "10.0.0.1") },
			want: "check.b is unknown\nthe postcondition of vm.a is unknown",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, conditioned)
			address(s, "127.0.0.1")
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, judged(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

func TestAFalseConditionIsDrift(t *testing.T) {
	s := after(t, conditioned)
	m := s.objectOf("vm.b").Attrs.AsValueMap()
	m["memory"] = cty.NumberIntVal(128 << 20)
	s.objectOf("vm.b").Attrs = cty.ObjectVal(m)
	w, err := planner.Observe(t.Context(), s.open, s.config, s.state, s.options)
	if err != nil {
		t.Fatal(err)
	}
	d, err := planner.Diff(s.config, s.state, w, s.options)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, item := range planner.DriftOf(s.config, d, s.state).Items {
		if item.Kind == providers.FindCheck {
			got = append(got, fmt.Sprintf("%s: %s", item.Address, item.Evidence))
		}
	}
	if want := []string{"check.b: c is slow"}; !slices.Equal(got, want) {
		t.Errorf("drift has %q, want %q", got, want)
	}
}

// What only an apply can tell takes no object down before it is known; what makes or changes one waits for it.
func TestPreconditionsThatOnlyAnApplyKnows(t *testing.T) {
	const asked = `vm "a" {
  memory = "256MiB"
  lifecycle {
    precondition {
      condition     = vm.b.address == "127.0.0.1"
      error_message = "no"
    }
  }
}
vm "b" {
}
`
	const why = "vm.a precondition: a precondition of it is known only after other changes of this plan, and its object would be taken down before\n" +
		"the precondition of vm.a is unknown"
	const made = "vm \"a\" {\n  memory = \"256MiB\"\n}\n"
	for _, test := range []struct {
		name, applied, spec string
		change              func(*scene)
		want                string
	}{
		{name: "both are made", applied: "vm \"z\" {\n}\n", spec: asked, want: "the precondition of vm.a is unknown"},
		{name: "a restart", applied: made, spec: strings.Replace(asked, "256MiB", "512MiB", 1), want: why},
		{name: "a replacement that was asked for", applied: made, spec: asked, want: why, change: func(s *scene) {
			s.options.Replace = map[spec.Address]bool{addr(s.t, "vm.a"): true}
			s.options.Allow.Replace = s.options.Replace
		}},
		{name: "a stop", applied: made, spec: strings.Replace(asked, "  memory", "  running = false\n  memory", 1), want: why},
		{name: "nothing to do", applied: made, spec: asked, want: "the precondition of vm.a is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := after(t, test.applied)
			s.config = load(t, test.spec)
			if test.change != nil {
				test.change(s)
			}
			p, err := s.plan()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, judged(p)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
			for _, step := range p.Steps {
				if c := p.Changes[step.Change]; c.Undecided && step.Phase.Sinks() {
					t.Errorf("%s %s, before its precondition is known", step.Op, step.Address)
				}
			}
		})
	}
}

// A postcondition that the plan knows to be false blocks the change, before it costs anything.
func TestAPostconditionThatCannotHold(t *testing.T) {
	const wanted = "vm \"a\" {\n  memory = \"256MiB\"\n  lifecycle {\n    postcondition {\n      condition     = self.memory == \"256MiB\"\n      error_message = \"no\"\n    }\n  }\n}\n"
	s := after(t, wanted)
	s.config = load(t, strings.Replace(wanted, "256MiB", "512MiB", 1))
	p, err := s.plan()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := judged(p), "vm.a postcondition: its postcondition does not hold: no\nthe postcondition of vm.a is fail"; got != want {
		t.Errorf("the plan says\n%s\nwant\n%s", got, want)
	}
}

// Pending edits are no drift, and a lock is released whatever a condition says.
func TestWhatConditionsAreNotAskedOf(t *testing.T) {
	s := after(t, "vm \"a\" {\n}\n")
	s.config = load(t, "vm \"a\" {\n}\nvm \"new\" {\n  memory = \"1GiB\"\n}\ncheck \"new\" {\n  assert {\n    condition     = vm.new.memory == \"2GiB\"\n    error_message = \"no\"\n  }\n}\n")
	w, err := planner.Observe(t.Context(), s.open, s.config, s.state, s.options)
	if err != nil {
		t.Fatal(err)
	}
	d, err := planner.Diff(s.config, s.state, w, s.options)
	if err != nil {
		t.Fatal(err)
	}
	if items := planner.DriftOf(s.config, d, s.state).Items; len(items) > 0 {
		t.Errorf("drift: %+v", items)
	}
	s.options.Unlock = map[spec.Address]bool{addr(t, "vm.a"): true}
	s.config = load(t, strings.Replace(conditioned, "== \"256MiB\"", "== \"1GiB\"", 1))
	if p, err := s.plan(); err != nil || strings.Contains(judged(p), "precondition") {
		t.Errorf("%v, %s", err, judged(p))
	}
}
