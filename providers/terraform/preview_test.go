package terraform

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/spec"
)

// planOf reads resource changes, a line each: address, actions and perhaps a deposed key.
func planOf(t *testing.T, changes string, outputs map[string]string) *tfjson.Plan {
	t.Helper()
	p := &tfjson.Plan{OutputChanges: map[string]*tfjson.Change{}}
	actions := func(text string) (all tfjson.Actions) {
		for word := range strings.SplitSeq(text, "+") {
			all = append(all, tfjson.Action(word))
		}
		return all
	}
	for line := range strings.Lines(changes) {
		words := append(strings.Fields(line), "")
		address := words[0]
		at := strings.LastIndex(strings.TrimSuffix(address, "."), "aws_vm.")
		base, _, _ := strings.Cut(address[at:], "[")
		kind, name, _ := strings.Cut(base, ".")
		p.ResourceChanges = append(p.ResourceChanges, &tfjson.ResourceChange{
			Address: address, ModuleAddress: strings.TrimSuffix(address[:at], "."), Type: kind, Name: name,
			DeposedKey: words[2], Change: &tfjson.Change{Actions: actions(words[1])},
		})
	}
	for name, action := range outputs {
		p.OutputChanges[name] = &tfjson.Change{Actions: actions(action)}
	}
	return p
}

func TestPreviewOf(t *testing.T) {
	const (
		live    = providers.Live
		replace = providers.Replace
	)
	for name, test := range map[string]struct {
		changes string
		outputs map[string]string
		reasons map[string]string
		want    []providers.Act
	}{
		"nothing":                  {"aws_vm.a no-op", map[string]string{"ip": "no-op"}, nil, nil},
		"reading":                  {"aws_vm.a read", nil, nil, nil},
		"create":                   {"aws_vm.a create", nil, nil, []providers.Act{{Text: "create aws_vm.a", Applies: live}}},
		"update":                   {"module.m.aws_vm.a[0] update", nil, nil, []providers.Act{{Text: "update module.m.aws_vm.a[0]", Applies: live}}},
		"replace":                  {"aws_vm.a delete+create", nil, map[string]string{"aws_vm.a": "cannot_update"}, []providers.Act{{Text: "replace aws_vm.a (cannot update)", Applies: replace}}},
		"replace, new one first":   {"aws_vm.a create+delete", nil, nil, []providers.Act{{Text: "replace aws_vm.a", Applies: replace}}},
		"destroy":                  {"aws_vm.a delete", nil, nil, []providers.Act{{Text: "destroy aws_vm.a", Applies: replace}}},
		"destroy an old copy":      {"aws_vm.a delete 0a1b", nil, nil, []providers.Act{{Text: "destroy the old copy of aws_vm.a", Applies: replace}}},
		"outputs alone":            {"", map[string]string{"b": "update", "a": "create", "c": "no-op"}, nil, []providers.Act{{Text: "update output a", Applies: live}, {Text: "update output b", Applies: live}}},
		"outputs follow resources": {"aws_vm.a update", map[string]string{"b": "update"}, nil, []providers.Act{{Text: "update aws_vm.a", Applies: live}}},
	} {
		p := previewOf(planOf(t, test.changes, test.outputs), test.reasons)
		if diff := cmp.Diff(test.want, p.acts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.isEmpty() != (test.want == nil) {
			t.Errorf("%s: empty %t", name, p.isEmpty())
		}
	}
}

// What destroys a resource and was not shown, as it would be now, is refused.
func TestUnforeseen(t *testing.T) {
	p := previewOf(planOf(t, "aws_vm.a delete+create\naws_vm.b update\naws_vm.c delete\n", nil), map[string]string{"aws_vm.a": "tainted"})
	for name, test := range map[string]struct {
		shown foreseen
		want  string
	}{
		"nothing was shown": {foreseen{}, "replace aws_vm.a (tainted), destroy aws_vm.c"},
		"all was shown":     {foreseen{Acts: p.acts()}, ""},
		"one was shown":     {foreseen{Acts: []providers.Act{{Text: "destroy aws_vm.c", Applies: providers.Replace}}}, "replace aws_vm.a (tainted)"},
		"for another reason": {
			foreseen{Acts: []providers.Act{{Text: "replace aws_vm.a (cannot update)", Applies: providers.Replace}, {Text: "destroy aws_vm.c", Applies: providers.Replace}}}, "replace aws_vm.a (tainted)",
		},
		"as live": {foreseen{Acts: []providers.Act{{Text: "replace aws_vm.a (tainted)", Applies: providers.Live}, {Text: "destroy aws_vm.c", Applies: providers.Replace}}}, "replace aws_vm.a (tainted)"},
	} {
		if got := strings.Join(p.unforeseen(test.shown), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A module that is edited between the plan and its steps, as while the question waits for an answer, is not applied, and nothing is
// destroyed for it. Files that its VMs make beside its configuration change nothing.
func TestTheModuleIsEditedAfterThePlan(t *testing.T) {
	vm := spec.Address{Kind: spec.VM, Name: "web"}
	for name, test := range map[string]struct {
		file    string
		refused bool
	}{
		"its configuration": {"main.tf", true}, "a file beside it": {"made.key", false},
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("main.tf", "resource \"terraform_data\" \"vm\" {}\n")
		p := &Provider{binary: "terraform", module: dir, settings: providers.Settings{Dir: t.TempDir()}}
		steps, err := p.Steps(providers.Change{
			Address: vm, Kind: spec.VM, Action: providers.ReplaceIt, ID: "new", Object: &providers.Object{Kind: spec.VM, ID: "old"},
			Policy: cty.ObjectVal(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.False})}),
		})
		if err != nil || len(steps) != 2 {
			t.Fatalf("%s: steps %+v, %v", name, steps, err)
		}
		write(test.file, "# edited\nresource \"terraform_data\" \"other\" {}\n")
		for _, s := range steps {
			task, _, err := p.Begin(t.Context(), providers.Work{Step: s}, func(providers.Progress) {})
			if err != nil {
				t.Fatal(err)
			}
			j, _ := task.(*job)
			err = j.isAsPlanned()
			var problem *providers.Problem
			if errors.As(err, &problem) != test.refused || test.refused && (problem.Outcome != providers.Unsafe || problem.Code != "terraform_changed") {
				t.Errorf("%s, before %s: %v", name, s.Op, err)
			}
			if _, err := j.destroy(t.Context()); s.Op == opDestroy && (err != nil) != test.refused {
				t.Errorf("%s: the destroy ended with %v", name, err)
			}
		}
	}
}

// A shared resource is never destroyed with a VM, whether its address is named or that of all its instances.
func TestSpareShared(t *testing.T) {
	p := &Provider{shared: shared{"aws_vm.net": "", `module.m.aws_vm.base["x"]`: "id"}}
	for changes, want := range map[string]string{
		"aws_vm.net create\naws_vm.a delete":          "",
		"aws_vm.net[0] delete":                        "destroy the shared aws_vm.net[0]",
		"aws_vm.net delete+create\naws_vm.net update": "replace the shared aws_vm.net",
		`module.m.aws_vm.base["x"] delete`:            `destroy the shared module.m.aws_vm.base["x"]`,
		`module.m.aws_vm.base["y"] delete`:            "",
		"module.n.aws_vm.net delete":                  "",
	} {
		err := p.spareShared(previewOf(planOf(t, changes, nil), nil))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want+", which all VMs of the module use") {
			t.Errorf("%s: %v, want %q", changes, err, want)
		}
	}
}

// Terraform's messages are read line by line, however they are cut into parts.
func TestMessages(t *testing.T) {
	lines := `{"type":"planned_change","change":{"resource":{"addr":"aws_vm.a"},"reason":"tainted"}}
no JSON
{"type":"apply_start","hook":{"resource":{"addr":"aws_vm.a"},"action":"create"}}
{"type":"apply_start","hook":{"resource":{"addr":"aws_vm.a"},"action":"delete"}}
{"type":"diagnostic","diagnostic":{"severity":"warning","summary":"Deprecated"}}
{"type":"diagnostic","diagnostic":{"severity":"error","summary":"No","detail":"two\n  lines","address":"aws_vm.a","range":{"filename":"main.tf","start":{"line":3}}}}
{"type":"diagnostic","diagnostic":{"severity":"error","summary":"Bad","range":{"filename":"main.tf","start":{"line":3}}}}
`
	for size := 1; size < len(lines); size += 7 {
		var told []string
		m := messages{log: func(e providers.Progress) { told = append(told, e.Text) }}
		for rest := lines; rest != ""; {
			part := rest[:min(size, len(rest))]
			rest = rest[len(part):]
			if n, err := m.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		all := strings.Join(told, "\n")
		if m.reasons["aws_vm.a"] != "tainted" || len(told) != 2 || !strings.Contains(all, "aws_vm.a: creating") || !strings.Contains(all, "aws_vm.a: destroying") {
			t.Errorf("in parts of %d: %v, and told\n%s", size, m.reasons, all)
		}
		if got, want := m.failure(nil).Error(), "aws_vm.a: No: two lines; main.tf:3: Bad"; got != want {
			t.Errorf("in parts of %d it failed with %q, want %q", size, got, want)
		}
	}
}
