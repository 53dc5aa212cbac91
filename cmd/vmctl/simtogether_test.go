package main

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Three VMs are stopped at the same time: each of them ends only after all of them were asked
// to. vmctl reports their ends in the order of their addresses.
//
// row L30
func TestVMsStopTogether(t *testing.T) {
	s := newSite(t, together)
	if out, err := s.vmctl("apply", "--auto-approve").CombinedOutput(); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	cmd := s.vmctl("destroy", "--auto-approve")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, asked := "", 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said += lines.Text() + "\n"
		if !strings.Contains(lines.Text(), "asked it to shut down") {
			continue
		}
		if asked++; asked == 3 {
			endAll(t, s.home)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("destroy: %v\n%s", err, said)
	}
	steps := regexp.MustCompile(`(?m)^  [0-9] down +(\S+) `).FindAllStringSubmatch(said, -1)
	want := []string{`vm.web["a"]`, `vm.web["b"]`, `vm.web["c"]`}
	var got []string
	for _, step := range steps {
		got = append(got, step[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the order of the plan (-want +got):\n%s", diff)
	}
	if n := strings.Count(said, "(graceful)"); n != 3 {
		t.Errorf("%d VMs are said to have ended gracefully:\n%s", n, said)
	}
	if all, err := processesIn(s.home); err != nil || len(all) > 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// together has VMs that end an hour after they were asked to.
var together = fmt.Sprintf(`%s
provider "sim" "here" {
  fault {
    op    = "stop"
    kind  = "late_exit"
    delay = "1h"
  }
}

vm "web" {
  provider = provider.sim.here
  for_each = toset(["a", "b", "c"])

  stop {
    grace = "1h"
  }
}
`, spec)
