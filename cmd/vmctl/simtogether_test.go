package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Three VMs are stopped at the same time: each of them ends only once all of them
// were asked to. How they ended is said in the order of their addresses.
//
// row L30
func TestVMsStopTogether(t *testing.T) {
	home, err := os.MkdirTemp("", "h") //nolint:usetesting // the path of t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endAll(t, home)
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(home, "main.vmctl.hcl"), []byte(together), 0o600); err != nil {
		t.Fatal(err)
	}
	vmctl := func(args ...string) *exec.Cmd {
		cmd := exec.Command("vmctl", args...)
		cmd.Dir, cmd.Env = home, append(os.Environ(), "HOME="+home, "VMCTL_DATA_DIR="+home+"/d")
		return cmd
	}
	if out, err := vmctl("apply", "--auto-approve").CombinedOutput(); err != nil {
		t.Fatalf("apply: %v\n%s", err, out)
	}
	cmd := vmctl("destroy", "--auto-approve")
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
			endAll(t, home)
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
	if all, err := processesIn(home); err != nil || len(all) > 0 {
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
