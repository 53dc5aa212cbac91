package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"vmctl/search"
)

// block returns the text of a vm block of the host, with more lines.
func block(label string, lines ...string) string {
	return fmt.Sprintf("vm %q {\n  provider = provider.sim.here\n  boot {\n    kernel = \"k\"\n  }\n  %s\n}\n", label, strings.Join(lines, "\n  "))
}

func disk(label, format string) string {
	return fmt.Sprintf("disk %q {\n  provider = provider.sim.here\n  size     = \"1MiB\"\n  format   = %q\n}\n", label, format)
}

func attaches(label string) string { return "additional_disk {\n    disk = disk." + label + "\n  }" }

func file(label string, lines ...string) string {
	return fmt.Sprintf("box %q {\n  in    = vm.a\n  label = %q\n  %s\n}\n", label, label, strings.Join(lines, "\n  "))
}

// Edits that once had no plan, or left remains: one apply does each.
func TestEditsThatOnceHadNoPlan(t *testing.T) {
	instances := func(a, b string) string {
		return block("w", "for_each = {\n    a = disk."+a+"\n    b = disk."+b+"\n  }", "additional_disk {\n    disk = each.value\n  }") + disk("x", "qcow2") + disk("y", "qcow2")
	}
	const forwarded = "port_forward {\n    guest = 80\n    host  = 8081\n  }"
	for _, tc := range []struct {
		name  string
		steps []search.Step
	}{
		{"1a: a VM drops a disk that is replaced", []search.Step{
			{Spec: block("a", attaches("d")) + disk("d", "qcow2")},
			{
				Spec: block("a") + disk("d", "raw"),
				Plan: []string{
					"stop vm.a", "detach vm.a", "delete disk.d", "define disk.d", "redefine vm.a", "start vm.a", "wait_ready vm.a",
				},
			},
		}},
		{"1b: and another VM takes it over", []search.Step{
			{Spec: block("a", attaches("d")) + block("b") + disk("d", "qcow2")},
			{Spec: block("a") + block("b", attaches("d")) + disk("d", "raw")},
		}},
		{"1c: a disk goes to the VM that its VM depends on", []search.Step{
			{Spec: block("b", attaches("d"), "depends_on = [vm.e]") + block("e") + disk("d", "qcow2")},
			{Spec: block("b", "depends_on = [vm.e]") + block("e", attaches("d")) + disk("d", "qcow2")},
		}},
		{"a disk of one instance is replaced, and all are restarted in turns", []search.Step{
			{Spec: instances("x", "y")},
			{
				Spec: strings.NewReplacer(
					"for_each", "rollout {\n    max_unavailable = 1\n  }\n  restart_triggers = { t = \"1\" }\n  for_each", disk("x", "qcow2"), disk("x", "raw"),
				).Replace(instances("x", "y")),
				Plan: []string{
					`stop vm.w["a"]`, `detach vm.w["a"]`, "delete disk.x", "define disk.x", `redefine vm.w["a"]`, `start vm.w["a"]`, `wait_ready vm.w["a"]`,
					`stop vm.w["b"]`, `redefine vm.w["b"]`, `start vm.w["b"]`, `wait_ready vm.w["b"]`,
				},
			},
		}},
		{"1d: two VMs swap their disks", []search.Step{
			{Spec: block("a", attaches("x")) + block("b", attaches("y")) + disk("x", "qcow2") + disk("y", "qcow2")},
			{
				Spec: block("a", attaches("y")) + block("b", attaches("x")) + disk("x", "qcow2") + disk("y", "qcow2"),
				Plan: []string{
					"stop vm.a", "stop vm.b", "detach vm.a", "detach vm.b", "redefine vm.a", "redefine vm.b",
					"start vm.a", "start vm.b", "wait_ready vm.a", "wait_ready vm.b",
				},
			},
		}},
		{"1d: also within one for_each", []search.Step{{Spec: instances("x", "y")}, {Spec: instances("y", "x")}}},
		{"1e: two VMs swap their names", []search.Step{
			{Spec: block("a", `name = "n1"`) + block("b", `name = "n2"`)},
			{Spec: block("a", `name = "n2"`) + block("b", `name = "n1"`)},
		}},
		{"1f: a record is moved before its block is renamed", []search.Step{
			{Spec: block("a")},
			{Spec: block("a"), Moves: [][2]string{{"vm.a", "vm.zz"}}},
		}},
		{"1g: a moved VM is renamed while a new block takes its old name", []search.Step{
			{Spec: block("a", `name = "n1"`)},
			{Spec: block("b", `name = "n2"`) + block("c", `name = "n1"`) + "moved {\n  from = vm.a\n  to   = vm.b\n}\n"},
		}},
		{"1h: depends_on is turned round, with both replaced", []search.Step{
			{Spec: block("a", `name = "n1"`, "depends_on = [vm.b]") + block("b", `name = "n2"`)},
			{Spec: block("a", `name = "n3"`) + block("b", `name = "n4"`, "depends_on = [vm.a]")},
		}},
		{"1h: and then both go", []search.Step{
			{Spec: block("a", "depends_on = [vm.b]") + block("b")},
			{Spec: block("a") + block("b", "depends_on = [vm.a]")},
			{Spec: "# nothing\n"},
		}},
		{"2: what says running = false is not started for a value of another", []search.Step{
			{Spec: block("f", "cpus = 1") + "vm \"a\" {\n  provider = provider.sim.here\n  running  = false\n  boot {\n    kernel  = \"k\"\n    cmdline = vm.f.address\n  }\n}\n"},
			{
				Spec: block("f", "cpus = 2") + "vm \"a\" {\n  provider = provider.sim.here\n  running  = false\n  boot {\n    kernel  = \"k\"\n    cmdline = vm.f.address\n  }\n}\n",
				Plan: []string{"stop vm.f", "redefine vm.f", "start vm.f", "wait_ready vm.f"},
			},
		}},
		{"2: nor is what runs restarted for one that stays", []search.Step{
			{Spec: block("f", "cpus = 1") + "vm \"a\" {\n  provider = provider.sim.here\n  boot {\n    kernel  = \"k\"\n    cmdline = vm.f.address\n  }\n}\n"},
			{
				Spec: block("f", "cpus = 2") + "vm \"a\" {\n  provider = provider.sim.here\n  boot {\n    kernel  = \"k\"\n    cmdline = vm.f.address\n  }\n}\n",
				Plan: []string{"stop vm.f", "redefine vm.f", "start vm.f", "wait_ready vm.f"},
			},
		}},
		{"2: also for a port that its spec chose", []search.Step{
			{Spec: block("f", "cpus = 1", forwarded) + block("a", "restart_triggers = { port = vm.f.ports[\"80\"] }")},
			{
				Spec: block("f", "cpus = 2", forwarded) + block("a", "restart_triggers = { port = vm.f.ports[\"80\"] }"),
				Plan: []string{"stop vm.f", "redefine vm.f", "start vm.f", "wait_ready vm.f"},
			},
		}},
		{"3: a live edit waits for what was never ready", []search.Step{
			{Spec: block("a") + disk("d", "qcow2"), Faults: []search.Fault{{Op: "wait_ready", Kind: "fail"}}, Fails: true},
			{
				Spec: block("a", attaches("d")) + disk("d", "qcow2"),
				Plan: []string{"redefine vm.a", "wait_ready vm.a"},
			},
		}},
		{"4: two files of which one waits for the other are released before their VM goes down", []search.Step{
			{Spec: block("a", "cpus = 1") + file("f") + file("g", "depends_on = [box.f]")},
			{
				Spec: block("a", "cpus = 2") + file("f") + file("g", "depends_on = [box.f]"),
				Plan: []string{
					"close box.f", "close box.g", "stop vm.a", "redefine vm.a", "start vm.a", "wait_ready vm.a", "open box.f", "open box.g",
				},
			},
		}},
		{"what is inside of a VM that is off goes with a VM that is let go of", []search.Step{
			{Spec: block("a") + file("f")},
			{Spec: block("a", "running = false") + file("f")},
			{Spec: "removed {\n  from    = vm.a\n  destroy = false\n}\n"},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { search.Named(t, searched(), tc.steps...) })
	}
}
