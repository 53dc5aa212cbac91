package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"

	"vmctl/cmd/internal/view"
	"vmctl/providers"
)

// asTerraform returns a plan as a program of Terraform's reads it.
func asTerraform(t *testing.T, doc view.PlanDocument) *tfjson.Plan {
	t.Helper()
	var p tfjson.Plan
	if err := json.Unmarshal([]byte(asJSON(t, view.PlanTerraform(doc))), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// nested returns a document with a value at a path.
func nested(path string, v any) any {
	names := strings.Split(path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		v = map[string]any{names[i]: v}
	}
	return v
}

func at(doc any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		in, _ := doc.(map[string]any)
		doc = in[name]
	}
	return doc
}

// Each attribute of each kind, and each policy, changed alone: the plan as Terraform writes it has its values before and after.
func TestTerraformShowsEveryAttributeBeforeAndAfter(t *testing.T) {
	for _, one := range everyAttribute(t) {
		before, after := view.Plain(one.before), view.Plain(one.after)
		top, _, deep := strings.Cut(one.path, ".")
		other := map[string]any{"beside": true}
		if deep {
			other = map[string]any{top: other}
		}
		c := view.ChangeDocument{Address: string(one.kind) + ".web", Action: "update", Before: nested(one.path, before), After: nested(one.path, after), AfterUnknown: false}
		if one.policy {
			c.Before, c.After, c.PolicyBefore, c.PolicyAfter = other, other, c.Before, c.After
		}
		p := asTerraform(t, view.PlanDocument{Changes: []view.ChangeDocument{c}})
		got := p.ResourceChanges[0].Change
		if asJSON(t, at(got.Before, one.path)) != asJSON(t, before) || asJSON(t, at(got.After, one.path)) != asJSON(t, after) || !got.Actions.Update() {
			t.Errorf("%s.%s: %+v", one.kind, one.path, got)
		}
		if one.policy && asJSON(t, at(got.After, "beside")) != "true" && asJSON(t, at(got.After, top+".beside")) != "true" {
			t.Errorf("%s.%s: the attributes beside it are gone: %v", one.kind, one.path, got.After)
		}
	}
}

// Each action is one of Terraform's, and what is blocked happens to nothing.
func TestTerraformActions(t *testing.T) {
	one, two := map[string]any{"id": "1", "cpus": 1.0}, map[string]any{"id": "1", "cpus": 2.0}
	for action, want := range map[providers.Action]string{
		providers.Create: "create", providers.Update: "update", providers.RestartIt: "update", providers.ReplaceIt: "delete create", providers.Destroy: "delete",
		providers.Start: "update", providers.Stop: "update", providers.Recover: "update", providers.Adopt: "no-op", providers.Import: "no-op", providers.NoOp: "no-op",
		providers.Forget: "forget", providers.Release: "forget",
	} {
		c := view.ChangeDocument{Address: `vm.web["a"]`, Action: string(action), Before: one, After: two, AfterUnknown: map[string]any{"address": true}}
		if action == providers.Create {
			c.Before = nil
		}
		if action == providers.Destroy {
			c.After = nil
		}
		p := asTerraform(t, view.PlanDocument{Changes: []view.ChangeDocument{c}})
		r := p.ResourceChanges[0]
		var got []string
		for _, a := range r.Change.Actions {
			got = append(got, string(a))
		}
		if strings.Join(got, " ") != want || r.Address != `vm.web["a"]` || r.Type != "vm" || r.Name != "web" || r.Index != "a" || r.Mode != tfjson.ManagedResourceMode {
			t.Errorf("%s: %v, %+v", action, got, r)
		}
		if takes := action == providers.Adopt || action == providers.Import; (r.Change.Importing != nil) != takes {
			t.Errorf("%s: importing is %v", action, r.Change.Importing)
		}
		c.Blocked = &view.BlockDocument{Kind: "blocked"}
		p = asTerraform(t, view.PlanDocument{Changes: []view.ChangeDocument{c}})
		if r := p.ResourceChanges[0]; !r.Change.Actions.NoOp() || asJSON(t, r.Change.Before) != asJSON(t, r.Change.After) || *p.Complete {
			t.Errorf("%s, blocked: %+v, complete: %t", action, r.Change, *p.Complete)
		}
	}
}

// Masked values are marked where they stand, the conditions of a block are one check, and outputs have their actions.
func TestTerraformMarksAndChecks(t *testing.T) {
	secret := map[string]any{"env": map[string]any{"A": "(sensitive)", "B": "b"}, "list": []any{"a", "(sensitive)"}}
	got := view.PlanTerraform(view.PlanDocument{
		Changes: []view.ChangeDocument{{Address: "vm.web", Action: "create", After: secret, AfterUnknown: false}},
		Outputs: []view.OutputChange{{Name: "new", After: "a"}, {Name: "same", Before: "a", After: "a"}, {Name: "later", Before: "a", AfterUnknown: true}},
		Checks: []view.CheckEntry{
			{Address: "check.size", Kind: "assert", Status: "pass"},
			{Address: "check.size", Kind: "assert", Index: 1, Status: "fail", Message: "too small"},
			{Address: `vm.web["a"]`, Kind: "precondition", Status: "unknown"},
			{Address: `vm.web["b"]`, Kind: "postcondition", Status: "error", Message: "no"},
		},
	})
	if diff := cmp.Diff(any(map[string]any{"env": map[string]any{"A": true}, "list": []any{false, true}}), got.ResourceChanges[0].Change.AfterSensitive); diff != "" {
		t.Errorf("what is masked (-want +got):\n%s", diff)
	}
	actions := map[string]string{}
	for name, o := range got.OutputChanges {
		actions[name] = strings.Join(o.Actions, " ")
	}
	if diff := cmp.Diff(map[string]string{"new": "create", "same": "no-op", "later": "update"}, actions); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	want := []view.TerraformCheck{
		{
			Address: view.TerraformCheckAddress{Kind: "check", Name: "size", ToDisplay: "check.size"}, Status: "fail",
			Instances: []view.TerraformCheckResult{{Address: view.TerraformInstance{ToDisplay: "check.size"}, Status: "fail", Problems: []view.TerraformProblem{{Message: "too small"}}}},
		},
		{
			Address: view.TerraformCheckAddress{Kind: "resource", Mode: "managed", Type: "vm", Name: "web", ToDisplay: "vm.web"}, Status: "error",
			Instances: []view.TerraformCheckResult{
				{Address: view.TerraformInstance{ToDisplay: `vm.web["a"]`, InstanceKey: "a"}, Status: "unknown"},
				{Address: view.TerraformInstance{ToDisplay: `vm.web["b"]`, InstanceKey: "b"}, Status: "error", Problems: []view.TerraformProblem{{Message: "no"}}},
			},
		},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}
