package planner_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/providers"
	"vmctl/providers/providertest"
	"vmctl/providers/providertest/box"
	"vmctl/spec"
)

// plannedEffect shows how a plan follows an attribute. In applied and spec, VALUE stands for
// each of the values; the plan has the text of the same index, and not the other one.
type plannedEffect struct {
	applied, spec string
	change        func(*scene)
	values, plans [2]string
	limits        [2]time.Duration   // of the first step; zero: whatever it is
	classes       [2]providers.Class // of the first step; zero: whatever it is
}

const (
	otherProvider = "provider \"libvirt\" \"far\" {\n  uri = \"qemu:///system\"\n}\nprovider \"libvirt\" \"near\" {\n  uri = \"qemu:///session\"\n}\n"
	ignoring      = "  lifecycle {\n    ignore_changes = VALUE\n  }\n"
	ceiling       = "  lifecycle {\n    on_change = VALUE\n  }\n"
	protected     = "  lifecycle {\n    prevent_destroy = VALUE\n  }\n"
	protects      = "blocked: lifecycle.prevent_destroy is set"
)

// provisioned returns a VM with a script.
func provisioned(lines string) string { return block(one, "  provision \"x\" {\n    "+lines+"\n  }\n") }

// block returns a block of a VM, a disk or a box with more lines in it.
func block(base, lines string) string { return strings.Replace(base, "{\n", "{\n"+lines, 1) }

// ruled returns a lifecycle block with a condition.
func ruled(kind, condition, message string) string {
	return "  lifecycle {\n    " + kind + " {\n      condition     = " + condition + "\n      error_message = " + message + "\n    }\n  }\n"
}

// user returns a VM that depends on a resource.
func user(of string) string { return "vm \"z\" {\n  depends_on = [" + of + "]\n}\n" }

// plannedEffects has a row for each attribute that only the planner and the executor act on.
var plannedEffects = map[string]plannedEffect{
	"vm.provider": {
		spec: otherProvider + block(one, "  provider = VALUE\n"), change: func(s *scene) { s.system("qemu:///system").refuses("far") },
		values: [2]string{"provider.libvirt.near", "provider.libvirt.far"}, plans: [2]string{"0 define vm.a", "blocked: far"},
	},
	"vm.for_each": {
		spec: block(one, "  for_each = VALUE\n"), values: [2]string{`toset(["x"])`, `toset(["y"])`},
		plans: [2]string{`define vm.a["x"]`, `define vm.a["y"]`},
	},
	"vm.depends_on": {
		spec: block(one, "  depends_on = VALUE\n") + "vm \"b\" {\n  ssh {\n    wait = false\n  }\n}\n", values: [2]string{"[]", "[vm.b]"},
		plans: [2]string{"0 define vm.a\n", "define vm.a after"},
	},
	"vm.when_busy": {
		applied: one, spec: "vm \"a\" {\n  memory = \"256MiB\"\n  running = false\n  when_busy = \"VALUE\"\n}\n", change: func(s *scene) { s.enter(1) },
		values: [2]string{"block", "wait 90s"}, plans: [2]string{"blocked: it is busy", "0 stop vm.a"},
	},
	"vm.orphan.policy": {
		applied: one, spec: block(one, "  orphan {\n    policy = \"VALUE\"\n  }\n"), change: func(s *scene) { s.forget("vm.a") },
		values: [2]string{"stop", "report"}, plans: [2]string{"0 stop vm.a", "found orphan vm.a"},
	},
	"vm.rollout.max_unavailable": {
		applied: "vm \"w\" {\n  for_each = toset([\"a\", \"b\"])\n}\n",
		spec:    "vm \"w\" {\n  for_each = toset([\"a\", \"b\"])\n  cpus = 1\n  rollout {\n    max_unavailable = VALUE\n  }\n}\n",
		values:  [2]string{"1", "2"}, plans: [2]string{"stop vm.w[\"b\"] after 0,1,2,3\n", "stop vm.w[\"b\"]\n"},
	},
	"vm.lifecycle.prevent_destroy": {
		applied: block(one, protected), spec: "# empty\n", values: [2]string{"false", "true"}, plans: [2]string{"1 delete vm.a", protects},
	},
	"vm.lifecycle.on_change": {
		applied: one, spec: "vm \"a\" {\n  memory = \"512MiB\"\n" + ceiling + "}\n",
		values: [2]string{`{ memory = "live" }`, `{ memory = "restart" }`}, plans: [2]string{"on_change allows at most live", "1 redefine vm.a"},
	},
	"vm.lifecycle.ignore_changes": {
		applied: one, spec: "vm \"a\" {\n  memory = \"512MiB\"\n" + ignoring + "}\n",
		values: [2]string{"[cpus]", "[memory]"}, plans: [2]string{"memory 256MiB -> 512MiB", "how vmctl treats it changed"},
	},

	"vm.provision.script": {
		applied: provisioned(`script = "true"`), spec: provisioned(`script = "VALUE"`), values: [2]string{"one", "two"},
		plans: [2]string{"provision.x.script true -> one", "provision.x.script true -> two"},
	},
	"vm.provision.run": {
		applied: provisioned(`script = "true"`), spec: provisioned("script = \"false\"\n    run = \"VALUE\""), change: func(s *scene) { s.ran("x") },
		values: [2]string{"once", "on_change"}, plans: [2]string{"0 record vm.a\n", "0 provision x vm.a\n"},
	},
	"vm.provision.env": {
		applied: provisioned(`script = "true"`), spec: provisioned("script = \"true\"\n    run = \"on_change\"\n    env = VALUE"), change: func(s *scene) { s.ran("x") },
		values: [2]string{"{}", `{ A = "b" }`}, plans: [2]string{"0 record vm.a\n", "0 provision x vm.a\n"},
	},
	"vm.provision.timeout": {
		applied: one, spec: provisioned("script = \"true\"\n    timeout = \"VALUE\""), values: [2]string{"7m", "8m"},
		limits: [2]time.Duration{12 * time.Minute, 13 * time.Minute}, // and the wait for its guest, 5m,
	},
	"vm.provision.contractual": {
		applied: one, spec: provisioned("script = \"true\"\n    contractual = VALUE"), values: [2]string{"true", "false"},
		classes: [2]providers.Class{providers.Contractual, providers.Diagnostic},
	},
	"vm.lifecycle.precondition.condition": {
		spec:   block(one, ruled("precondition", "VALUE", `"no"`)),
		values: [2]string{"true", "false"}, plans: [2]string{"0 define vm.a", "blocked: its precondition does not hold: no"},
	},
	"vm.lifecycle.precondition.error_message": {
		spec:   block(one, ruled("precondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},
	"vm.lifecycle.postcondition.condition": {
		applied: one, spec: block(one, ruled("postcondition", "VALUE", `"no"`)) + user("vm.a"),
		values: [2]string{"true", "false"}, plans: [2]string{"define vm.z", "blocked: its postcondition does not hold: no"},
	},
	"vm.lifecycle.postcondition.error_message": {
		applied: one, spec: block(one, ruled("postcondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},

	"disk.provider": {
		spec: otherProvider + block(cache, "  provider = VALUE\n"), change: func(s *scene) { s.system("qemu:///system").refuses("far") },
		values: [2]string{"provider.libvirt.near", "provider.libvirt.far"}, plans: [2]string{"0 define disk.cache", "blocked: far"},
	},
	"disk.for_each": {
		spec: block(cache, "  for_each = VALUE\n"), values: [2]string{`toset(["x"])`, `toset(["y"])`},
		plans: [2]string{`define disk.cache["x"]`, `define disk.cache["y"]`},
	},
	"disk.depends_on": {
		spec: block(cache, "  depends_on = VALUE\n") + one, values: [2]string{"[]", "[vm.a]"}, plans: [2]string{"define disk.cache\n", "define disk.cache after"},
	},
	"disk.lifecycle.prevent_destroy": {
		applied: block(cache, protected), spec: "# empty\n", values: [2]string{"false", "true"}, plans: [2]string{"0 delete disk.cache", protects},
	},
	"disk.lifecycle.on_change": {
		applied: cache, spec: block(cache, "  format = \"raw\"\n"+ceiling),
		values: [2]string{`{ format = "live" }`, `{ format = "replace" }`}, plans: [2]string{"on_change allows at most live", "0 delete disk.cache"},
	},
	"disk.lifecycle.ignore_changes": {
		applied: cache, spec: "disk \"cache\" {\n  size = \"2GiB\"\n" + ignoring + "}\n",
		values: [2]string{"[format]", "[size]"}, plans: [2]string{"size 1GiB -> 2GiB", "how vmctl treats it changed"},
	},
	"disk.lifecycle.precondition.condition": {
		spec:   block(cache, ruled("precondition", "VALUE", `"no"`)),
		values: [2]string{"true", "false"}, plans: [2]string{"0 define disk.cache", "blocked: its precondition does not hold: no"},
	},
	"disk.lifecycle.precondition.error_message": {
		spec:   block(cache, ruled("precondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},
	"disk.lifecycle.postcondition.condition": {
		applied: cache, spec: block(cache, ruled("postcondition", "VALUE", `"no"`)) + user("disk.cache"),
		values: [2]string{"true", "false"}, plans: [2]string{"define vm.z", "blocked: its postcondition does not hold: no"},
	},
	"disk.lifecycle.postcondition.error_message": {
		applied: cache, spec: block(cache, ruled("postcondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},

	"box.for_each": {
		applied: one, spec: one + block(note, "  for_each = VALUE\n"), values: [2]string{`toset(["x"])`, `toset(["y"])`},
		plans: [2]string{`make box.note["x"]`, `make box.note["y"]`},
	},
	"box.depends_on": {
		applied: one, spec: one + block(note, "  depends_on = VALUE\n") + cache, values: [2]string{"[]", "[disk.cache]"},
		plans: [2]string{"make box.note\n", "make box.note after"},
	},
	"box.in": {
		applied: one + "vm \"b\" {}\n", spec: one + "vm \"b\" {}\n" + strings.Replace(note, "vm.a", "VALUE", 1),
		change: func(s *scene) { s.inside("vm.b").refuses("in vm.b") },
		values: [2]string{"vm.a", "vm.b"}, plans: [2]string{"0 make box.note", "blocked: in vm.b"},
	},
	"box.lifecycle.prevent_destroy": {
		applied: one + block(note, protected), spec: one, values: [2]string{"false", "true"}, plans: [2]string{"1 remove box.note", protects},
	},
	"box.lifecycle.on_change": {
		applied: one + note, spec: one + strings.Replace(block(note, ceiling), `label   = "note"`, `label = "other"`, 1),
		values: [2]string{`{ label = "live" }`, `{ label = "replace" }`}, plans: [2]string{"on_change allows at most live", "1 remove box.note"},
	},
	"box.lifecycle.ignore_changes": {
		applied: one + note, spec: one + strings.Replace(block(note, ignoring), "\"x\"", "\"y\"", 1),
		values: [2]string{"[label]", "[content]"}, plans: [2]string{"content x -> y", "how vmctl treats it changed"},
	},
	"box.lifecycle.precondition.condition": {
		applied: one, spec: one + block(note, ruled("precondition", "VALUE", `"no"`)),
		values: [2]string{"true", "false"}, plans: [2]string{"make box.note", "blocked: its precondition does not hold: no"},
	},
	"box.lifecycle.precondition.error_message": {
		applied: one, spec: one + block(note, ruled("precondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},
	"box.lifecycle.postcondition.condition": {
		applied: one + note, spec: one + block(note, ruled("postcondition", "VALUE", `"no"`)) + user("box.note"),
		values: [2]string{"true", "false"}, plans: [2]string{"define vm.z", "blocked: its postcondition does not hold: no"},
	},
	"box.lifecycle.postcondition.error_message": {
		applied: one + note, spec: one + block(note, ruled("postcondition", "false", "VALUE")),
		values: [2]string{`"one"`, `"two"`}, plans: [2]string{"does not hold: one", "does not hold: two"},
	},
}

// Each attribute that the shapes document, and that no provider acts on, has a row that shows its
// effect on a plan.
//
// row A32
func TestEveryPlannedAttributeActs(t *testing.T) {
	var demanded []string
	for _, kind := range []spec.Kind{spec.VM, spec.Disk, box.Kind} {
		for _, path := range providertest.Planned(kind) {
			demanded = append(demanded, string(kind)+"."+path)
		}
	}
	slices.Sort(demanded)
	if diff := cmp.Diff(demanded, slices.Sorted(maps.Keys(plannedEffects))); diff != "" {
		t.Errorf("attributes and their rows (-attributes +rows):\n%s", diff)
	}
	for key, row := range plannedEffects {
		t.Run(key, func(t *testing.T) {
			for i, value := range row.values {
				with := func(text string) string { return strings.ReplaceAll(text, "VALUE", value) }
				s := after(t, with(row.applied))
				s.config = load(t, with(row.spec))
				if row.change != nil {
					row.change(s)
				}
				p, err := s.plan()
				if err != nil {
					t.Fatal(err)
				}
				got := text(p)
				if limit := row.limits[i]; limit != 0 && (len(p.Steps) == 0 || p.Steps[0].Timeout != limit) {
					t.Errorf("%s: the first step is to take at most %s:\n%+v", value, limit, p.Steps)
				}
				if class := row.classes[i]; class != "" && (len(p.Steps) == 0 || p.Steps[0].Class != class) {
					t.Errorf("%s: the first step is to be %s:\n%+v", value, class, p.Steps)
				}
				if row.plans == [2]string{} {
					continue
				}
				if !strings.Contains(got, row.plans[i]) || strings.Contains(got, row.plans[1-i]) {
					t.Errorf("%s: the plan is to have %q, and not %q:\n%s", value, row.plans[i], row.plans[1-i], got)
				}
			}
		})
	}
}

// refuses makes a system refuse every change, so that a plan shows which changes go there.
func (s *system) refuses(reason string) { s.refusal = providers.Refuse(reason, nil) }
