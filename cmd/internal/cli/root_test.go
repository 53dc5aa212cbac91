package cli_test

import (
	"slices"
	"strings"
	"testing"

	"vmctl/cmd/internal/cli"
)

func TestVersion(t *testing.T) {
	newHouse(t, "").run("version").exits(0).says("vmctl 0.1.0 (go1.26, linux/amd64)")
}

func TestCompletion(t *testing.T) {
	h := newHouse(t, "")
	for shell, text := range map[string]string{"bash": "__start_vmctl", "zsh": "#compdef vmctl", "fish": "complete -c vmctl", "powershell": "Register-ArgumentCompleter"} {
		h.run("completion", shell).exits(0).says(text)
	}
	h.run("completion", "tcsh").exits(3).warns("the shells are bash, zsh, fish and powershell")
}

func TestUsage(t *testing.T) {
	h := newHouse(t, withID+small)
	for _, test := range []struct {
		args  string
		warns []string
	}{
		{"plam", []string{`unknown command "plam" for "vmctl"`, "did you mean vmctl plan?"}},
		{"vm sart", []string{`unknown command "sart" for "vmctl vm"`, "did you mean vmctl vm start?"}},
		{"start dev", []string{"did you mean vmctl container start, or vmctl vm start?"}},
		{"stop", []string{"did you mean vmctl container stop, or vmctl vm stop?"}},
		{"ls", []string{"did you mean vmctl status?"}},
		{"rm vm.dev", []string{"did you mean vmctl destroy, or vmctl state rm?"}},
		{"taint vm.dev", []string{"did you mean vmctl apply --replace=ADDR?"}},
		{"vm list", []string{`unknown command "list" for "vmctl vm"`, "did you mean vmctl status?"}},
		{"workspace create", []string{"did you mean vmctl workspace open?"}},
		{"logs", []string{"did you mean vmctl container logs, or vmctl job logs, or vmctl vm logs?"}},
		{"plan --traget=vm.dev", []string{"unknown flag: --traget", "did you mean --target?"}},
		{"plan --nonsense", []string{"unknown flag: --nonsense"}},
		{"plan -json", []string{"unknown flag -json", "did you mean --json?"}},
		{"plan -target=vm.dev", []string{"did you mean --target?"}},
		{"plan --nonsense", []string{"unknown flag: --nonsense", "vmctl plan --help"}},
		{"plan -x", []string{"unknown shorthand flag: 'x' in -x"}},
		{"plan surplus", []string{`vmctl plan takes no argument, and got "surplus"`}},
		{"show", []string{"vmctl show needs the address of a resource"}},
		{"show a b", []string{`got "b" beyond that`}},
		{"vm exec dev", []string{"vmctl vm exec needs the name of a VM and a command"}},
		{"apply --parallelism=0", []string{"it has to be at least 1"}},
		{"apply --lock-timeout=soon", []string{"--lock-timeout"}},
		{"output --raw", []string{"--raw needs the name of an output"}},
		{"plan --env=Staging", []string{`read --env "Staging"`}},
		{"plan --var=memory", []string{"memory"}},
	} {
		code := 3
		h.run(strings.Fields(test.args)...).exits(code).warns(test.warns...)
	}
	h.run().exits(0).says("Usage:", "vmctl init, vmctl plan, vmctl apply")
}

// What other tools call a command leads to one that there is, and hides none of vmctl's own.
func TestOtherNames(t *testing.T) {
	h := newHouse(t, withID+small)
	for name, meant := range cli.OtherNames() {
		h.run(strings.Fields(name)...).exits(3).warns("did you mean ")
		for _, command := range meant {
			words := slices.DeleteFunc(strings.Fields(command), func(word string) bool { return strings.HasPrefix(word, "--") || word == "NAME" })
			h.run(append(words, "--help")...).exits(0).says("Usage:\n  " + strings.Join(append([]string{"vmctl"}, words...), " ") + " ")
		}
	}
}
