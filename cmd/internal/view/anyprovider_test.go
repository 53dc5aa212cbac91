package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/cmd/internal/view/graph"
	"vmctl/executor"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// A type of provider that this program has never heard of, with a kind, settings, an attribute,
// an operation and an argument of its own, is shown like any other.
func TestAnyProviderIsShown(t *testing.T) {
	unit := spec.Address{Kind: "unit", Name: "a"}
	ref := spec.ProviderRef{Type: "acme", Name: "north"}
	c := planner.Change{Provider: ref, Place: planner.Place{Settings: object("rack", str("7"))}}
	c.Address, c.Kind, c.Action, c.Name = unit, unit.Kind, providers.Create, "a-1"
	c.Want = &spec.Resource{Address: unit, Want: object("slots", num(2))}
	hoist := planner.Step{Step: providers.Step{
		Op: "hoist", Words: providers.Words{Doing: "hoisting it into its rack", Done: "hoisted"}, Address: unit,
		Phase: providers.PhaseMake, Args: arguments{{"crane", "east"}}, Timeout: time.Minute,
	}}
	plan := &planner.Plan{Changes: []planner.Change{c}, Steps: []planner.Step{hoist}, Summary: count(c)}
	shown := on(0, func(s view.Screen) { view.Plan(s, plan, view.PlanOptions{Verbose: true}) })
	var out bytes.Buffer
	p := view.Progress{Screen: view.Screen{W: &out}}
	p.Watch(executor.Event{Kind: executor.StepStarted, At: noon(), Step: hoist})
	p.Watch(executor.Event{Kind: executor.StepDone, At: noon(), Step: hoist, How: providers.Done})
	drawn := graph.Graph{Nodes: []graph.Node{{ID: unit.String(), Kind: string(unit.Kind), Label: "unit.a hoist"}}}
	for text, wants := range map[string][]string{
		shown:           {"+ unit.a create", "provider.acme.north (rack 7)", "slots     2", "make  unit.a  hoist", "crane east"},
		out.String():    {"unit.a: hoisting it into its rack", "unit.a: hoisted in 0s"},
		drawn.DOT():     {"unit.a hoist"},
		drawn.SVG():     {"unit.a hoist", "#9333ea"},
		drawn.Mermaid(): {"unit.a hoist"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("it lacks %q:\n%s", want, text)
			}
		}
	}
}
