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
	if want := []string{"check.b: c is slow", "vm.a: precondition: b has 128MiB"}; !slices.Equal(got, want) {
		t.Errorf("drift has %q, want %q", got, want)
	}
}
