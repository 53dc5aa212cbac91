package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	newHouse(t, small).run("validate").exits(0).says("The files are valid: 1 resource.")
	h := newHouse(t, "vm \"dev\" {\n  memory = \"8G\"\n  cpu = 1\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	// row A35
	h.run("validate").exits(3).warns("on main.vmctl.hcl line 2", "8GiB", "on main.vmctl.hcl line 3", "cpus")
}

func TestTwoVMsOfOneName(t *testing.T) {
	// row L49
	h := newHouse(t, withID+"vm \"a\" {\n  name = \"same\"\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n"+
		"vm \"b\" {\n  name = \"same\"\n  boot {\n    kernel = \"vmlinuz\"\n  }\n}\n")
	h.run("validate").exits(3).warns("vm.a", "vm.b", "same")
	h.run("apply", "--auto-approve").exits(3)
	h.acted()
}

// row L50: what is to be booted is checked before anything is planned
func TestUnreadableKernel(t *testing.T) {
	h := newHouse(t, withID+small)
	if err := os.Remove(filepath.Join(h.dir, "vmlinuz")); err != nil {
		t.Fatal(err)
	}
	h.run("apply", "--auto-approve").exits(3).warns("on main.vmctl.hcl line", "vmlinuz")
	h.acted()
}

// A key that fits no file name is a mistake at its block, and does not fail a plan.
func TestValidateDerivedNames(t *testing.T) {
	key := strings.Repeat("ü", 40)
	h := newHouse(t, withID+"vm \"web\" {\n  for_each = toset([\"a\", \""+key+"\"])\n  boot { kernel = \"vmlinuz\" }\n}\n")
	h.run("validate").exits(0)
	h.memory.nameLimit = 200
	h.run("validate").exits(3).warns("Error: Name too long", "on main.vmctl.hcl line 6, in vm \"web\":", "that has 249 bytes, and provider libvirt has names of up to 200")
	h.run("plan", "--json").exits(3).says(`"code": "invalid_spec"`, `"summary": "Name too long"`)
}
