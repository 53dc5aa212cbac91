package main

import (
	"bufio"
	"strings"
	"testing"
)

const hanging = spec + `
provider "sim" "here" {
  fault {
    op   = "start"
    kind = "hang"
  }
}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
}
`

// While a run is under way, other commands say so; after it was killed, they say that it was
// cut short.
//
// row L45
func TestLookingBesideAnApply(t *testing.T) {
	s := newSite(t, hanging)
	says := func(want []string, args ...string) {
		t.Helper()
		out, err := s.vmctl(args...).CombinedOutput()
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("vmctl %v (%v) does not say %q:\n%s", args, err, text, out)
			}
		}
	}

	apply := s.vmctl("apply", "--auto-approve")
	stdout, err := apply.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := apply.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan() && !strings.Contains(lines.Text(), "starting"); {
	}
	says([]string{"the run lock is held by vmctl apply", "another run is at it: start"}, "status")
	says([]string{"the run lock is held by vmctl apply", "another run began to start it", "and is at it"}, "plan")

	if err := apply.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := apply.Wait(); err == nil {
		t.Error("the apply ended well")
	}
	says([]string{"an earlier run was cut short: start"}, "status")
	says([]string{"interrupted vm.dev", "an earlier run began to start it", "and did not end"}, "plan")
}
