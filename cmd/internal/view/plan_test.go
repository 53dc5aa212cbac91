package view_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
	"vmctl/state"
)

func options() view.PlanOptions {
	return view.PlanOptions{Title: "Plan for quickstart", Providers: declared(), Offer: view.Offer{Apply: "vmctl apply"}}
}

func TestPlan(t *testing.T) {
	held := options()
	held.Holder = &state.Holder{PID: 4711, Host: "ada", Command: "vmctl apply", Since: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	rest := options()
	rest.Offer.Apply = "vmctl apply --exclude=vm.db --exclude=vm.far --exclude=vm.web"
	verbose := options()
	verbose.Verbose = true
	for _, test := range []struct {
		name    string
		plan    *planner.Plan
		options view.PlanOptions
	}{
		{"plan-create", createPlan(), options()}, // row A34
		{"plan-risky", riskyPlan(), rest},
		{"plan-none", emptyPlan(), options()},
		{"plan-held", createPlan(), held},
		{"plan-nothing", &planner.Plan{Project: project()}, options()},
	} {
		for _, columns := range []int{80, 40} {
			name := fmt.Sprintf("%s-%d", test.name, columns)
			t.Run(name, func(t *testing.T) {
				golden(t, name, on(columns, func(s view.Screen) { view.Plan(s, test.plan, test.options) }))
			})
		}
	}
}

func TestPlanFitsTheScreen(t *testing.T) {
	got := on(80, func(s view.Screen) { view.Plan(s, riskyPlan(), options()) })
	for line := range strings.Lines(got) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
}

func TestPlanShowsRisksOnTheFirstScreen(t *testing.T) {
	plan := manyPlan(500, providers.RestartIt)
	for i := range plan.Changes {
		plan.Steps = append(plan.Steps, step(i, i, plan.Changes[i], "stop", providers.PhaseDown, time.Minute))
		plan.Steps[i].Risk = providers.Downtime
	}
	lost := change("old", providers.Destroy, "it is no longer in the files")
	plan.Changes = append(plan.Changes, lost)
	last := step(500, 500, lost, "delete", providers.PhaseRemove, time.Minute)
	last.Risk = providers.DataLoss
	plan.Steps = append(plan.Steps, last)
	plan.Summary = count(plan.Changes...)
	got := on(80, func(s view.Screen) { view.Plan(s, plan, options()) })
	first := strings.Join(strings.Split(got, "\n")[:24], "\n")
	for _, want := range []string{"500 to restart, 1 to destroy", "! data loss vm.old", "! downtime vm.vm000", "and 496 others"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first 24 lines lack %q:\n%s", want, first)
		}
	}
}

func TestPlanCollapsesLikeChanges(t *testing.T) {
	plan := manyPlan(30, providers.Create)
	short := on(80, func(s view.Screen) { view.Plan(s, plan, options()) })
	if n := strings.Count(short, "  + vm.vm"); n != 20 {
		t.Errorf("shows %d changes of 30 that are alike, want 20:\n%s", n, short)
	}
	if want := "and 10 more to create; --verbose shows them"; !strings.Contains(short, want) {
		t.Errorf("lacks %q:\n%s", want, short)
	}
	o := options()
	o.Verbose = true
	long := on(80, func(s view.Screen) { view.Plan(s, plan, o) })
	if n := strings.Count(long, "  + vm.vm"); n != 30 {
		t.Errorf("--verbose shows %d changes, want all 30", n)
	}
}

// Changes of one action for different reasons are not alike: each reason is told.
func TestPlanTellsEachReasonOfARisk(t *testing.T) {
	plan := manyPlan(22, providers.Destroy)
	plan.Changes = append(plan.Changes, change("old", providers.Destroy, "a removed block asks for it"))
	for i, c := range plan.Changes {
		plan.Steps = append(plan.Steps, step(i, i, c, "delete", providers.PhaseRemove, time.Minute))
		plan.Steps[i].Risk = providers.DataLoss
	}
	plan.Summary = count(plan.Changes...)
	got := on(80, func(s view.Screen) { view.Plan(s, plan, options()) })
	for _, want := range []string{"! data loss vm.old: destroy, a removed block asks for it", "and 18 others", "- vm.old destroy: a removed block asks for it"} {
		if !strings.Contains(got, want) {
			t.Errorf("the plan lacks %q:\n%s", want, got)
		}
	}
}

func TestPlanLeavesLongListsOfStepsToVerbose(t *testing.T) {
	plan := manyPlan(30, providers.Create)
	for i, c := range plan.Changes {
		plan.Steps = append(plan.Steps, makeSteps(c, i, 4*i)...)
	}
	short := on(80, func(s view.Screen) { view.Plan(s, plan, options()) })
	if want := "120 steps: 30 reserve, 30 make, 30 up, 30 ready; --verbose lists them"; !strings.Contains(short, want) {
		t.Errorf("lacks %q:\n%s", want, short)
	}
	o := options()
	o.Verbose = true
	long := on(80, func(s view.Screen) { view.Plan(s, plan, o) })
	if want := "119 ready"; !strings.Contains(long, want) {
		t.Errorf("--verbose lacks %q", want)
	}
}

func TestPlanTellsADefaultOnce(t *testing.T) {
	first, second, third := creation("a"), creation("b"), creation("c")
	third.Want.Defaults = append(slices.Clone(third.Want.Defaults), spec.Default{Path: "root_disk.size", Value: num(20 << 30), Origin: "default of vm"})
	plan := &planner.Plan{Project: project(), Changes: []planner.Change{first, second, third}, Summary: count(first, second, third)}
	short := on(0, func(s view.Screen) { view.Plan(s, plan, options()) })
	for _, want := range []string{
		"\n      defaults as above; --verbose repeats them\n",
		"\n      default of vm: root_disk.size 20GiB\n      other defaults as above; --verbose repeats them\n",
	} {
		if strings.Count(short, want) != 1 {
			t.Errorf("want once %q:\n%s", want, short)
		}
	}
	o := options()
	o.Verbose = true
	long := on(0, func(s view.Screen) { view.Plan(s, plan, o) })
	if got := strings.Count(long, "stop.grace 30s"); got != 3 || strings.Contains(long, "as above") {
		t.Errorf("--verbose tells a default %d times, want 3:\n%s", got, long)
	}
}

// arguments holds the arguments of a step of a provider that only the tests have.
type arguments [][2]string

func (a arguments) Words() [][2]string { return a }

func TestPlanVerboseTellsAboutSteps(t *testing.T) {
	plan := createPlan()
	plan.Steps[1].Imports, plan.Steps[1].Args = true, arguments{{"name", "quickstart.dev"}, {"uuid", "6c1e"}}
	plan.Steps[1].Takes = []providers.Claim{{Kind: "name", Key: "quickstart.dev"}}
	plan.Steps[1].Leaves = []string{"domain quickstart.dev"}
	o := options()
	o.Verbose = true
	golden(t, "plan-verbose-80", on(80, func(s view.Screen) { view.Plan(s, plan, o) }))
}

func TestPlanOnADumbTerminal(t *testing.T) {
	var out bytes.Buffer
	view.Plan(view.Screen{W: &out, Columns: 80, ASCII: true}, riskyPlan(), options())
	for _, r := range out.String() {
		if r > 127 {
			t.Fatalf("shows %q to a terminal that has no such letter:\n%s", r, out.String())
		}
	}
}

func TestPlanHasColorOnlyWhereAsked(t *testing.T) {
	var with, without bytes.Buffer
	view.Plan(view.Screen{W: &with, Columns: 80, Color: true}, riskyPlan(), options())
	view.Plan(view.Screen{W: &without, Columns: 80}, riskyPlan(), options())
	if strings.Contains(without.String(), "\x1b") {
		t.Errorf("escape sequences without color:\n%q", without.String())
	}
	if !strings.Contains(with.String(), "\x1b[31m") {
		t.Errorf("no red with color:\n%q", with.String())
	}
	stripped := with.String()
	for _, code := range []string{"0", "1", "2", "31", "32", "33", "36"} {
		stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m", "")
	}
	if stripped != without.String() {
		t.Errorf("color changes more than color:\n%s\nversus\n%s", stripped, without.String())
	}
}

func TestPlanIsTheSameEveryTime(t *testing.T) {
	first := on(80, func(s view.Screen) { view.Plan(s, riskyPlan(), options()) })
	for range 50 { // row X17
		if again := on(80, func(s view.Screen) { view.Plan(s, riskyPlan(), options()) }); again != first {
			t.Fatalf("the same plan looks different:\n%s\nversus\n%s", first, again)
		}
	}
}

func plans() map[string]*planner.Plan {
	return map[string]*planner.Plan{"plan-create": createPlan(), "plan-risky": riskyPlan(), "plan-none": emptyPlan()}
}

func TestPlanJSON(t *testing.T) {
	for name, plan := range plans() {
		name += "-json"
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := view.JSON(&out, view.PlanJSON(plan, view.OwnFlags{})); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
		})
	}
}

func manyPlan(n int, action providers.Action) *planner.Plan {
	p := &planner.Plan{Project: project()}
	for i := range n {
		c := change(fmt.Sprintf("vm%03d", i), action, "memory cannot change while it runs")
		if action == providers.Create {
			c = creation(fmt.Sprintf("vm%03d", i))
		}
		p.Changes = append(p.Changes, c)
	}
	p.Summary = count(p.Changes...)
	return p
}
