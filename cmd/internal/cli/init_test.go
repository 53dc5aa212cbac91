package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// row A58: init is idempotent, and what needs it says so
func TestInit(t *testing.T) {
	h := newHouse(t, small)
	for _, command := range [][]string{{"plan"}, {"apply", "--auto-approve"}, {"destroy"}, {"status"}, {"show", "dev"}, {"output"}, {"vm", "stop", "dev"}} {
		h.run(command...).exits(3).warns("has no id", "vmctl init")
	}
	h.run("vm", "exec", "dev", "true").exits(255).warns("vmctl init")
	h.run("doctor").exits(1).says("the files have no id yet", "next: vmctl init")
	h.run("init", "--project=demo").exits(0).says("Wrote project demo with the id aaaaaaaaaa into vmctl.vmctl.hcl.", "Commit that file")
	written := h.read("vmctl.vmctl.hcl")
	h.run("init").exits(0).says("Project demo has the id aaaaaaaaaa already, in vmctl.vmctl.hcl. Nothing was changed.")
	h.run("init", "--project=other").exits(3).warns(`names the project "demo" already, not "other"`)
	if again := h.read("vmctl.vmctl.hcl"); again != written {
		t.Errorf("init changed the file from\n%s\nto\n%s", written, again)
	}
	h.run("plan").exits(0)
}

// A file that has one of the two gets the other, and init says so.
func TestInitCompletesTheFile(t *testing.T) {
	h := newHouse(t, "vmctl {\n  id = \"k7m2qd9x4r\"\n}\n"+small)
	h.run("init", "--project=demo").exits(0).says("Wrote project demo into main.vmctl.hcl, which had the id k7m2qd9x4r already.")
	h.run("init").exits(0).says("Nothing was changed.")
	newHouse(t, "vmctl {").run("init").exits(3).warns("does not parse", "see the mistakes of the files: vmctl validate")
}

func TestInitNamesTheProjectAfterTheFolder(t *testing.T) {
	for folder, project := range map[string]string{
		"My Project!": "my-project", "--": "project", "über": "ber", strings.Repeat("x", 40): strings.Repeat("x", 31), "a.b_c": "a-b-c",
	} {
		h := newHouse(t, small)
		dir := filepath.Join(h.dir, folder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a.vmctl.hcl"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.run("-C", folder, "init").exits(0).says("Wrote project " + project + " ")
	}
	newHouse(t, small).run("init", "--project=No Good").exits(3).warns("--project=no-good")
}
