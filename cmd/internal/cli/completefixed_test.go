package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/real"
	"vmctl/providers"
)

// offered returns the completions that a shell gets for the last word.
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

// Completions come from the files and the state; a system that does not answer does not
// matter.
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
		{"help vm ", "cp edit exec logs rekey restart shell ssh-config start stop"},
		{"help vm stop ", ""},
		{"help nonsense ", ""},
	} {
		if d := cmp.Diff(test.want, h.offered(strings.Split(test.words, " ")...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.words, d)
		}
	}
}

// Completions of VMs to stop and to enter are the running ones. A system that does not answer
// at once is not waited for.
func TestShellsAreOfferedWhatRuns(t *testing.T) {
	real.Long(t)
	h := newHouse(t, withID+several)
	h.run("apply", "--auto-approve").exits(0)
	h.run("vm", "stop", "dev").exits(0)
	check := func(when, want string) {
		t.Helper()
		for _, command := range []string{"stop", "shell", "exec"} {
			if got := h.offered("vm", command, ""); got != want {
				t.Errorf("%s: vm %s is offered %q, want %q", when, command, got, want)
			}
		}
	}
	check("one is off", `vm.web["a"] vm.web["b"]`)
	if got := h.offered("vm", "start", ""); got != `vm.dev vm.web["a"] vm.web["b"]` {
		t.Errorf("vm start is offered %q", got)
	}
	h.memory.unknown["demo.dev"] = "it is asleep"
	check("one cannot be read", `vm.dev vm.web["a"] vm.web["b"]`)
	delete(h.memory.unknown, "demo.dev")
	h.memory.mute = make(chan struct{})
	defer close(h.memory.mute)
	check("nobody answers", `vm.dev vm.web["a"] vm.web["b"]`)
}

func TestShellsAreOfferedValues(t *testing.T) {
	h := newHouse(t, withID+several+"variable \"size\" {\n  type = string\n}\nprovider \"libvirt\" \"here\" {}\n")
	for _, env := range []string{"", "--env=blue", "--env=green"} {
		h.run(append(strings.Fields(env), "apply", "--auto-approve", "--var=size=1")...).exits(0)
	}
	h.memory.machines["theirs"] = &machine{name: "theirs", state: providers.StateOff}
	h.memory.machines["hostile"] = &machine{name: "\x1b[2J", state: providers.StateOff}
	h.environ = []string{"VMCTL_VAR_size=1"}
	h.replace(`vm "dev"`, `vm "new"`)
	for _, test := range []struct{ words, want string }{
		{"graph --format ", "dot mermaid svg"},
		{"plan --log-level ", "trace debug info warn error fatal"},
		{"plan --env ", "blue green"},
		{"plan --env=", "blue green"},
		{"plan --var ", "size="},
		{"import --provider ", "provider.libvirt.default provider.libvirt.here"},
		{"import ", "vm.new"},
		{"import vm.new ", "theirs"},
		{"import disk.new ", ""},
		{"import vm.new theirs ", ""},
		{"plan --parallelism ", ""},
		{"vm stop --timeout ", ""},
		{"disk unlock ", ""},
		{"disk ", "list unlock"},
	} {
		if d := cmp.Diff(test.want, h.offered(strings.Split(test.words, " ")...)); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.words, d)
		}
	}
	h.environ = nil
	if got := h.offered("plan", "--var", ""); got != "size=" {
		t.Errorf("without a value --var is offered %q", got)
	}
	for words, want := range map[string]string{
		"plan --var-file ": ":0", "plan --out ": ":0", "plan -C ": ":16", "apply --data-dir ": ":16", "plan --target ": ":4", "plan --var ": ":6",
	} {
		if out := h.run(append([]string{"__complete"}, strings.Split(words, " ")...)...).exits(0).stdout; !strings.HasSuffix(out, want+"\n") {
			t.Errorf("%q: the shell is told %q, want %s", words, out, want)
		}
	}
}

// If the files have mistakes, vmctl offers nothing, shows nothing and makes no folder.
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
	h.run("help", "vm").says("Start, stop and enter VMs, and read their consoles.", "vm.dev, 'vm.web", "  stop ", "Use \"vmctl vm [command] --help\"")
	h.run("help", "vm", "--json").exits(0).says(`"command": "vmctl vm"`, `"text": "Start, stop and enter VMs, and read their consoles.`)
	h.run("help", "nonsense").exits(3).warns(`unknown command "nonsense" for "vmctl"`)
	h.run("help", "vm", "stopp").exits(3).warns(`unknown command "stopp" for "vmctl vm"`, "did you mean vmctl vm stop?")
}
