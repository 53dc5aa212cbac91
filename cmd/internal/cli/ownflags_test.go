package cli_test

import (
	"strings"
	"testing"
)

// Advice that a command gives without a plan has the flags of the user's own command line.
func TestAdviceHasTheUsersFlags(t *testing.T) {
	h := newHouse(t, withID+small)
	for _, test := range []struct {
		args []string
		next string
	}{
		{[]string{"apply", "none.vmplan"}, "next: vmctl plan --env=two --out=none.vmplan writes one"},
		{[]string{"vm", "shell", "dev", "--json"}, `"vmctl vm exec --env=two --json NAME -- COMMAND"`},
		{[]string{"state", "rm", "--force", "vm.none"}, "next: see those that it has: vmctl --env=two state list"},
		{[]string{"graph", "--destroy"}, "next: vmctl --env=two graph --plan --destroy"},
	} {
		got := h.run(append(test.args, "--env=two")...)
		if text := got.stdout + got.stderr; !strings.Contains(text, test.next) {
			t.Errorf("%v does not say %q:\n%s", test.args, test.next, text)
		}
	}
}
