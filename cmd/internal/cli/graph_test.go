package cli_test

import (
	"strings"
	"testing"

	"vmctl/providers"
)

// used is a spec in which one VM uses others.
const used = `
vm "db" {
  boot { kernel = "vmlinuz" }
}
vm "web" {
  for_each = toset(["a", "<b>\"&#"])
  boot {
    kernel  = "vmlinuz"
    cmdline = "db=${vm.db.address}"
  }
}
`

// The graph needs only the files: no id, no state, no system.
func TestGraphOfTheFiles(t *testing.T) {
	h := newHouse(t, used)
	h.memory.partial = providers.Refuse("no daemon answers", providers.SayVmctl("look: ", "doctor"))
	h.run("graph").exits(0).says("digraph vmctl {", `label="3 resources"`, `"vm.web[\"a\"]" -> "vm.db"`+"\n",
		`"vm.db" -> "provider.libvirt.default" [style=dashed`, `"vm.web[\"<b>\\\"&#\"]"`)
	h.run("graph", "--format=mermaid").exits(0).says("flowchart LR\n", `n1["vm.web#91;#34;#60;b#62;#92;#34;#38;#35;#34;#93;"]`, "n1 --> n0\n", "n2 -.-> n3\n")
	e := h.run("graph", "--format", "svg").exits(0).says("<svg xmlns=", ">vm.web[&#34;&lt;b&gt;\\&#34;&amp;#&#34;]</text>", "</svg>\n")
	if e.stderr != "" {
		t.Errorf("it says %q", e.stderr)
	}
	docs := h.run("graph", "--json").exits(0).documents()
	if n := len(docs[0]["nodes"].([]any)); n != 4 {
		t.Errorf("%d nodes, want 4", n)
	}
	if n := len(docs[0]["edges"].([]any)); n != 5 {
		t.Errorf("%d edges, want 5", n)
	}
	h.run("graph", "--format=png").exits(3).warns(`read --format "png": there is no such format`, "the formats are dot, mermaid, svg")
	h.run("graph", "--format=svg", "--json").exits(3).warns("leave out --format or --json")
	h.run("graph", "--destroy").exits(3).warns("vmctl graph --plan --destroy")
}

func TestGraphOfAPlan(t *testing.T) {
	h := newHouse(t, withID+used)
	e := h.run("graph", "--plan").exits(0).says(`label="Plan for demo: 9 steps"`, `"step 1" [label="vm.db start\n1 up, at most`, `"step 0" -> "step 1"`)
	if strings.Contains(e.stdout, "digraph") && strings.Count(e.stdout, "[label=") != 9 {
		t.Errorf("not nine steps:\n%s", e.stdout)
	}
	h.acted()
	h.run("apply", "--auto-approve").exits(0)
	h.run("graph", "--plan").exits(0).says(`label="Plan for demo: 0 steps"`)
	h.run("graph", "--plan", "--destroy", "--format=svg").exits(0).says("Plan to destroy demo: ", "vm.db delete")
	h.run("graph", "--plan", "--json").exits(0).says(`"nodes": []`, `"edges": []`)
}
