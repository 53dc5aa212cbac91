package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vmctl/condition"
	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/spec"
)

// conditions returns the conditions of all resources, as status shows them.
func (h *house) conditions() []string {
	h.t.Helper()
	var doc struct {
		Resources []struct {
			Address    string
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal([]byte(h.run("status", "--json").exits(0).stdout), &doc); err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, r := range doc.Resources {
		for _, c := range r.Conditions {
			all = append(all, fmt.Sprintf("%s %s %s", r.Address, c.Type, c.Status))
		}
	}
	return all
}

// The readiness of an engine has four outcomes, and a name that is of no engine's software, as the names of all conditions are.
//
// row E28
func TestEngineReady(t *testing.T) {
	real.Long(t)
	seen := map[string]bool{}
	has := func(h *house, want string) {
		t.Helper()
		all := h.conditions()
		if !slices.Contains(all, "engine.here engine.ready "+want) {
			t.Errorf("the engine's condition is not %s:\n%s", want, strings.Join(all, "\n"))
		}
		for _, line := range all {
			seen[strings.Fields(line)[1]] = true
		}
	}
	h, _ := boxed(t, true)
	has(h, "true")
	h.run("vm", "stop", "dev").exits(0)
	has(h, "not_applicable")
	h, d := boxed(t, false)
	has(h, "true")
	d.end()
	has(h, "unknown")
	h = newHouse(t, withID)
	h.engines = true
	h.write("engine.vmctl.hcl", "engine \"here\" {\n  host = \"unix:///none\"\n}\n")
	has(h, "false")

	for _, shape := range spec.Shapes() {
		for _, name := range shape.Conditions {
			seen[name] = true
		}
	}
	for name := range seen {
		for _, product := range []string{"docker", "moby", "containerd", "podman", "nerdctl"} {
			if strings.Contains(name, product) {
				t.Errorf("the condition %s has the name of an engine's software", name)
			}
		}
	}
	if !seen["engine.ready"] || !seen["ssh.ready"] {
		t.Errorf("the conditions are %v", seen)
	}
}

// An engine is off once its VM is confirmed to be, and the command does not return before. What is in it then neither runs nor is
// missing: it is not applicable.
//
// row E07
func TestEngineStopsWithItsVM(t *testing.T) {
	real.Long(t)
	h, _ := boxed(t, true)
	is := func(address, condition, want string) {
		t.Helper()
		if got := h.reports(address, condition); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
	is("container.web", "spec.applied", "present, true Applied @1")
	h.replace("  memory", "  running = false\n  memory")
	h.memory.fail["stop vm.dev"] = &providers.Problem{Outcome: providers.Failed, Code: "alive", Err: errors.New("could not confirm that it stopped")}
	h.run("apply", "--auto-approve").exits(1).warns("could not confirm that it stopped")
	is("vm.dev", "vm.running", "running, true")
	is("engine.here", "engine.ready", "present, true Ready")

	delete(h.memory.fail, "stop vm.dev")
	entered, hold := make(chan string), make(chan struct{})
	h.memory.entered, h.memory.hold["stop vm.dev"] = entered, hold
	returned := make(chan ending, 1)
	go func() { returned <- h.run("apply", "--auto-approve") }()
	for op := range entered {
		if op == "stop vm.dev" {
			break
		}
	}
	is("engine.here", "engine.ready", "present, true Ready")
	select {
	case e := <-returned:
		t.Errorf("it returned before the VM was off:\n%s", e.stdout)
	default:
	}
	h.memory.mu.Lock()
	h.memory.entered = nil
	h.memory.mu.Unlock()
	close(hold)
	(<-returned).exits(0)
	is("vm.dev", "vm.running", "stopped, false Stopped")
	is("engine.here", "engine.ready", "unknown, not_applicable Stopped")
	is("container.web", "spec.applied", "not_applicable, not_applicable NotApplicable")
	h.run("status").exits(0).says("container.web  not_applicable").silent("container.web  present")
}

// An edit of an engine's block that does not concern whether it answers: its readiness is of the new generation, and nobody connects
// anew.
//
// row E04
func TestEngineReadyOfAnUnconcernedEdit(t *testing.T) {
	real.Long(t)
	h, d := boxed(t, false)
	before := h.reports("engine.here", "engine.ready")
	h.write("engine.vmctl.hcl", strings.Replace(h.read("engine.vmctl.hcl"), "  host =", "  ready_timeout = \"7s\"\n  host =", 1))
	var steps []string
	for _, doc := range h.run("apply", "--auto-approve", "--json").exits(0).documents() {
		if doc["type"] == "step_started" {
			steps = append(steps, fmt.Sprint(doc["step"].(map[string]any)["op"]))
		}
	}
	if fmt.Sprint(steps) != "[record]" {
		t.Errorf("steps %v: more than the record", steps)
	}
	d.did()
	if got := h.reports("engine.here", "engine.ready"); before != "present, true Ready @1, settled true @1" || got != "present, true Ready @2, settled true @2" {
		t.Errorf("%s became %s", before, got)
	}
}

// Each change of the awaited condition is shown once, from the generation on that is applied: not how the stop before it ended the
// readiness of the generation before.
//
// row E09
func TestConditionsOfAWaitAreShown(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	booting := condition.Report{Type: condition.SSHReady, Status: condition.False, Reason: "Booting", Message: "it boots"}
	loading := condition.Report{Type: condition.SSHReady, Status: condition.Unknown, Reason: "Loading", Message: "it loads"}
	h.memory.reports = map[string][]condition.Report{
		"stop vm.dev":     {{Type: condition.SSHReady, Status: condition.False, Reason: "Ending", Message: "it ends"}},
		"wait_ssh vm.dev": {booting, booting, loading, booting},
	}
	lines := func(out string) (all []string) {
		for line := range strings.Lines(out) {
			if strings.Contains(line, "ssh.ready") && !strings.Contains(line, "format_version") {
				all = append(all, strings.TrimSpace(line))
			}
		}
		return all
	}
	h.replace("256MiB", "512MiB")
	want := "[vm.dev: ssh.ready false: it boots vm.dev: ssh.ready unknown: it loads vm.dev: ssh.ready false: it boots]"
	if got := fmt.Sprint(lines(h.run("apply", "--auto-approve").exits(0).stdout)); got != want {
		t.Errorf("shown: %s, want %s", got, want)
	}
}
