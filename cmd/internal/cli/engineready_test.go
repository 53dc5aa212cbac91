package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vmctl/internal/real"
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
