package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offered is what a shell is offered for the last word.
func (h *house) offered(words ...string) string {
	h.t.Helper()
	out := h.run(append([]string{"__complete"}, words...)...).exits(0).stdout
	var names []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(name, ":") {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

const several = `
vm "dev" {
  boot { kernel = "vmlinuz" }
}
vm "web" {
  for_each = toset(["a", "b"])
  boot { kernel = "vmlinuz" }
}
`

// Names are offered from the files and the state; no system is asked.
func TestShellsAreOfferedNames(t *testing.T) {
	h := newHouse(t, withID+several)
	h.run("apply", "--auto-approve").exits(0)
	h.replace(`toset(["a", "b"])`, `toset(["b", "c"])`)
	h.replace("boot {", "provider = provider.libvirt.bad\n  boot {")
	h.write("bad.vmctl.hcl", "provider \"libvirt\" \"bad\" {\n  uri = \"bad:\"\n}\n") // does not even open
	for _, test := range []struct{ words, want string }{
		{"vm stop ", `vm.dev vm.web["b"] vm.web["c"]`},
		{"vm start vm.dev ", `vm.web["b"] vm.web["c"]`},
		{"vm restart ", `vm.dev vm.web["b"] vm.web["c"]`},
		{"vm shell ", `vm.dev vm.web["b"] vm.web["c"]`},
		{"vm exec ", `vm.dev vm.web["b"] vm.web["c"]`},
		{"vm exec vm.dev ", ""},
		{"vm ssh-config ", `vm.dev vm.web["b"] vm.web["c"]`},
		{"show ", `vm.dev vm.web["a"] vm.web["b"] vm.web["c"]`},
		{"state show ", `vm.dev vm.web["a"] vm.web["b"]`},
		{"state rm vm.dev ", `vm.web["a"] vm.web["b"]`},
		{"plan --target ", `vm.dev vm.web["a"] vm.web["b"] vm.web["c"]`},
		{"destroy --allow-interrupt ", `vm.dev vm.web["a"] vm.web["b"] vm.web["c"]`},
		{"vm stop --allow-interrupt ", `vm.dev vm.web["a"] vm.web["b"] vm.web["c"]`},
		{"plan ", ""},
		{"completion ", "bash fish powershell zsh"},
		{"help vm ", "edit exec logs restart shell ssh-config start stop"},
		{"help vm stop ", ""},
		{"help nonsense ", ""},
	} {
		if d := cmp.Diff(test.want, h.offered(strings.Split(test.words, " ")...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.words, d)
		}
	}
}

// Mistakes in the files offer nothing and say nothing, and no folder is made.
func TestShellsAreOfferedNothingFromMistakes(t *testing.T) {
	for _, source := range []string{"vm \"dev\" {", withID + "vm \"dev\" {\n  cpus = \"x\"\n}\n", "vm \"dev\" {}\n"} {
		h := newHouse(t, source)
		if got := h.offered("show", ""); got != "" {
			t.Errorf("offered %q of:\n%s", got, source)
		}
		h.run("__complete", "show", "").exits(0).silent("Error")
		if _, err := os.Stat(h.data()); err == nil {
			t.Errorf("a data directory was made for:\n%s", source)
		}
	}
	h := newHouse(t, withID+small)
	h.write("vmlinuz", "")
	if got := h.offered("-C", "/nowhere", "vm", "stop", ""); got != "" {
		t.Errorf("offered %q of a folder that does not exist", got)
	}
}

func TestHelp(t *testing.T) {
	h := newHouse(t, withID+small)
	for _, command := range []string{"", "vm", "vm stop", "help", "apply"} {
		words := strings.Fields(command)
		asked := h.run(append(words, "--help")...).exits(0)
		told := h.run(append([]string{"help"}, words...)...).exits(0)
		if d := cmp.Diff(asked.stdout, told.stdout); d != "" {
			t.Errorf("help %s (- as --help + as help):\n%s", command, d)
		}
	}
	h.run("help", "vm").says("Start, stop, enter and look into VMs.", "vm.dev, dev", "  stop ", "Use \"vmctl vm [command] --help\"")
	h.run("help", "vm", "--json").exits(0).says(`"command": "vmctl vm"`, `"text": "Start, stop, enter and look into VMs.`)
	h.run("help", "nonsense").exits(3).warns(`unknown command "nonsense" for "vmctl"`)
	h.run("help", "vm", "stopp").exits(3).warns(`unknown command "stopp" for "vmctl vm"`, "did you mean vmctl vm stop?")
}
