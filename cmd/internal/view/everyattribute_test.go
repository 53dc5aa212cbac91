package view_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/cmd/internal/view"
	"vmctl/planner"
	"vmctl/providers"
	"vmctl/spec"
)

// alone is one attribute of a kind with two values that it may have.
type alone struct {
	kind          spec.Kind
	path          string
	policy        bool
	before, after cty.Value
}

// everyAttribute lists the attributes of all kinds that an edit may change, from the shapes.
func everyAttribute(t *testing.T) []alone {
	t.Helper()
	var all []alone
	var walk func(kind spec.Kind, b spec.Block, path string, policy bool)
	walk = func(kind spec.Kind, b spec.Block, path string, policy bool) {
		for _, a := range b.Attrs {
			if a.Meta || a.Own || a.Computed {
				continue
			}
			before, after := twoValues(t, a)
			one := alone{kind: kind, path: strings.TrimPrefix(path+"."+a.Name, "."), policy: policy || a.Policy, before: before, after: after}
			if b.Repeated && !b.Labelled { // the edit is one of the list of blocks
				one.path = strings.TrimPrefix(path, ".")
				one.before = cty.TupleVal([]cty.Value{object(a.Name, before)})
				one.after = cty.TupleVal([]cty.Value{object(a.Name, after)})
			}
			all = append(all, one)
		}
		for _, nested := range b.Blocks {
			under := path + "." + nested.Name
			if nested.Labelled {
				under += ".setup"
			}
			walk(kind, nested, under, policy || nested.Policy)
		}
	}
	kinds := spec.Kinds()
	for _, kind := range kinds {
		shape, _ := spec.Shape(kind)
		walk(kind, shape, "", false)
	}
	if len(kinds) < 5 || len(all) < 100 {
		t.Fatalf("%d kinds have %d attributes: the shapes were not read", len(kinds), len(all))
	}
	return all
}

// twoValues returns two values of an attribute's type.
func twoValues(t *testing.T, a spec.Attr) (before, after cty.Value) {
	t.Helper()
	switch {
	case len(a.OneOf) > 1 && a.Type == cty.String:
		return str(a.OneOf[0]), str(a.OneOf[1])
	case a.Type == cty.String:
		return str("one-" + a.Name), str("two-" + a.Name)
	case a.Type == cty.Bool:
		return cty.True, cty.False
	case a.Type == cty.Number && a.Unit == spec.Bytes:
		return num(3 << 30), num(5 << 30)
	case a.Type == cty.Number:
		return num(71), num(83)
	case a.Type.IsListType():
		return cty.ListVal([]cty.Value{str("one")}), cty.ListVal([]cty.Value{str("one"), str("two")})
	case a.Type.IsMapType():
		return cty.MapVal(map[string]cty.Value{"k": str("one")}), cty.MapVal(map[string]cty.Value{"k": str("two")})
	}
	t.Fatalf("%s has a type that this test does not know: %s", a.Name, a.Type.FriendlyName())
	return cty.NilVal, cty.NilVal
}

// Each attribute of each kind, and each policy, changed alone: the plan shows its values before and
// after, as text, as JSON and as Markdown.
func TestPlanShowsEveryAttributeBeforeAndAfter(t *testing.T) {
	for _, one := range everyAttribute(t) {
		e := providers.Edit{Path: one.path, Before: one.before, After: one.after, Verdict: providers.Verdict{Applies: providers.Live}}
		c := change("web", providers.Update, "")
		c.Address.Kind, c.Kind = one.kind, one.kind
		if one.policy {
			c.Policies = []providers.Edit{e}
		} else {
			c.Edits = []providers.Edit{e}
		}
		plan := &planner.Plan{Project: project(), Changes: []planner.Change{c}, Summary: count(c)}
		before, after := spec.FormatValue(one.kind, one.path, one.before), spec.FormatValue(one.kind, one.path, one.after)
		if before == after {
			t.Fatalf("%s.%s: both values are %s", one.kind, one.path, before)
		}
		text := strings.Join(strings.Fields(on(0, func(s view.Screen) { view.Plan(s, plan, options()) })), " ")
		if want := one.path + " " + before + " → " + after; !strings.Contains(text, want) {
			t.Errorf("%s.%s: the text lacks %q:\n%s", one.kind, one.path, want, text)
		}
		doc := view.PlanJSON(plan, view.OwnFlags{})
		got := doc.Changes[0].Edits
		if one.policy {
			got = doc.Changes[0].Policies
		}
		if len(got) != 1 || got[0].Path != one.path || asJSON(t, got[0].Before) != asJSON(t, view.Plain(one.before)) || asJSON(t, got[0].After) != asJSON(t, view.Plain(one.after)) {
			t.Errorf("%s.%s: the document has %+v", one.kind, one.path, got)
		}
		markdown := view.PlanMarkdown(doc, view.MarkdownOptions{})
		if want := "| `" + one.path + "` | " + before + " | " + after + " |"; !strings.Contains(markdown, want) {
			t.Errorf("%s.%s: the Markdown lacks %q:\n%s", one.kind, one.path, want, markdown)
		}
	}
}

// A sensitive value is masked in each of them.
func TestPlanMasksEverySensitiveAttribute(t *testing.T) {
	n := 0
	for _, one := range everyAttribute(t) {
		if one.policy || one.before.Type() != cty.String {
			continue
		}
		n++
		secret := "hunter2 of " + one.path
		c := change("web", providers.Update, "")
		c.Kind, c.Address.Kind = one.kind, one.kind
		c.Edits = []providers.Edit{{Path: one.path, Before: nothing(), After: spec.Sensitive(str(secret))}}
		name, _, nested := strings.Cut(one.path, ".")
		if !nested {
			c.Change.Want = object(name, spec.Sensitive(str(secret)))
			c.Object = &providers.Object{Attrs: object(name, str(secret))}
		}
		plan := &planner.Plan{Project: project(), Changes: []planner.Change{c}, Summary: count(c)}
		doc := view.PlanJSON(plan, view.OwnFlags{})
		all := on(0, func(s view.Screen) { view.Plan(s, plan, options()) }) + asJSON(t, doc) + view.PlanMarkdown(doc, view.MarkdownOptions{})
		if strings.Contains(all, "hunter2") || strings.Count(all, "(sensitive)") < 3 {
			t.Errorf("%s.%s is shown as\n%s", one.kind, one.path, all)
		}
	}
	if n == 0 {
		t.Error("no attribute was tried")
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A limit of bytes is kept, the risks stay, and what is left out is counted.
func TestMarkdownKeepsItsLimit(t *testing.T) {
	plan := manyPlan(200, providers.Create)
	plan.Steps = append(plan.Steps, step(0, 7, plan.Changes[7], "stop", providers.PhaseDown, 0))
	plan.Steps[0].Risk = providers.DataLoss
	doc := view.PlanJSON(plan, view.OwnFlags{})
	whole := len(view.PlanMarkdown(doc, view.MarkdownOptions{}))
	for _, most := range []int{200, 1000, 5000, 20000, whole} {
		got := view.PlanMarkdown(doc, view.MarkdownOptions{MaxBytes: most, Rest: "vmctl show p"})
		if len(got) > most {
			t.Errorf("%d bytes of at most %d", len(got), most)
		}
		if !strings.Contains(got, "**data loss** `vm.vm007`") {
			t.Errorf("%d bytes lack the risk:\n%s", most, got)
		}
		if n := strings.Count(got, "\n#### "); most < whole && most > 400 && (!strings.Contains(got, "left out: `vmctl show p` shows all") || n == 0) {
			t.Errorf("%d bytes show %d changes, and do not say what is left out:\n%s", most, n, got)
		}
	}
}

// Policies that the planner compares: each policy of each kind, changed alone.
func TestEachPolicyIsAnEdit(t *testing.T) {
	n := 0
	for _, one := range everyAttribute(t) {
		if !one.policy {
			continue
		}
		n++
		wrap := func(v cty.Value) cty.Value {
			path := strings.Split(one.path, ".")
			for _, name := range slices.Backward(path) {
				v = cty.ObjectVal(map[string]cty.Value{name: v})
			}
			return v
		}
		got := planner.PolicyEdits(one.kind, wrap(one.before), wrap(one.after))
		if len(got) != 1 || got[0].Path != one.path || !got[0].Before.RawEquals(one.before) || !got[0].After.RawEquals(one.after) {
			t.Errorf("%s.%s: the edits are %v", one.kind, one.path, got)
		}
		if same := planner.PolicyEdits(one.kind, wrap(one.before), wrap(one.before)); len(same) > 0 {
			t.Errorf("%s.%s did not change, and has the edits %v", one.kind, one.path, same)
		}
	}
	if n == 0 {
		t.Error("no kind has a policy")
	}
}
