package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/real"
)

// reports returns the state of a resource and one of its conditions, with the generation of both, as status shows them.
func (h *house) reports(address, condition string) string {
	h.t.Helper()
	type report struct {
		Type, Status, Reason string
		Generation           uint64 `json:"observed_generation"`
	}
	var doc struct {
		Resources []struct {
			Address, State string
			Conditions     []report
			Settled        report
		}
	}
	if err := json.Unmarshal([]byte(h.run("status", "--json").exits(0).stdout), &doc); err != nil {
		h.t.Fatal(err)
	}
	for _, r := range doc.Resources {
		i := slices.IndexFunc(r.Conditions, func(c report) bool { return c.Type == condition })
		if r.Address == address && i >= 0 {
			c := r.Conditions[i]
			return fmt.Sprintf("%s, %s %s @%d, settled %s @%d", r.State, c.Status, c.Reason, c.Generation, r.Settled.Status, r.Settled.Generation)
		}
	}
	h.t.Fatalf("status has no condition %s of %s", condition, address)
	return ""
}

// One edit gives the engine another type and its VM more memory: the VM restarts, and the engine is connected to once the
// VM is ready. It is ready for the new generation only then.
//
// row E25
// row E05
// row E46, of an engine in a VM
// row E07, of an engine in a VM that is to be off
func TestEngineTypeInAVM(t *testing.T) {
	real.Long(t)
	h, d := boxed(t, true)
	h.replace(`memory = "256MiB"`, `memory = var.engine == "moby" ? "256MiB" : "512MiB"`)
	h.write("engine.vmctl.hcl", strings.Replace(h.read("engine.vmctl.hcl"), "  host =", "  type = var.engine\n  ready_timeout = \"1s\"\n  host =", 1))
	h.write("variables.vmctl.hcl", "variable \"engine\" {\n  default = \"moby\"\n}\n")
	engine := func(typ string) {
		h.write("variables.vmctl.hcl", fmt.Sprintf("variable \"engine\" {\n  default = %q\n}\n", typ))
	}
	is := func(address, condition, want string) {
		t.Helper()
		if got := h.reports(address, condition); got != want {
			t.Errorf("%s is %s, want %s", address, got, want)
		}
	}
	h.run("apply", "--auto-approve").exits(0)
	is("engine.here", "engine.ready", "present, true Ready @2, settled true @2")
	is("container.web", "spec.applied", "present, true Applied @1, settled true @1")
	h.memory.acted = nil
	d.did()

	engine("containerd")
	h.run("plan").exits(0).says("type  moby → containerd", "Not applicable", "container.web, image.box", "vm.dev restart")
	is("engine.here", "engine.ready", "present, true Ready @2, settled false @2")
	h.run("apply", "--auto-approve").exits(0)
	is("engine.here", "engine.ready", "present, not_applicable NoProducer @3, settled true @3")
	is("container.web", "spec.applied", "not_applicable, not_applicable NotApplicable @1, settled true @1")
	h.run("plan", "--detailed-exitcode").exits(0)
	d.did()
	acted := strings.Join(h.memory.acted, ", ")
	if !strings.Contains(acted, "stop") || !strings.Contains(acted, "start") {
		t.Errorf("the VM did %s", acted)
	}

	h.replace("  memory", "  running = false\n  memory")
	h.run("apply", "--auto-approve").exits(0)
	is("container.web", "spec.applied", "not_applicable, not_applicable NotApplicable @1, settled true @1")
	engine("moby") // at rest
	h.run("apply", "--auto-approve").exits(0)
	is("container.web", "spec.applied", "not_applicable, not_applicable NotApplicable @1, settled true @1")
	is("engine.here", "engine.ready", "unknown, not_applicable Stopped @3, settled false @3")

	// Without an answer the engine stays as it is recorded, and is not ready for the new generation.
	h.replace("running = false", "running = true")
	d.mu.Lock()
	d.silent = true
	d.mu.Unlock()
	h.run("apply", "--auto-approve").exits(4).warns("connect to engine.here")
	is("engine.here", "engine.ready", "present, not_applicable NoProducer @3, settled false @3")
	d.mu.Lock()
	d.silent = false
	d.mu.Unlock()
	h.run("plan").exits(0).says("type  containerd → moby", "container.web, image.box read after engine.here is ready")
	h.run("apply", "--auto-approve").exits(0).says("type switched")
	is("engine.here", "engine.ready", "present, true Ready @4, settled true @4")
	is("container.web", "spec.applied", "present, true Applied @1, settled true @1")
	h.run("plan", "--detailed-exitcode").exits(0)
}
