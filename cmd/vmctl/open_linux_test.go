package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"vmctl/internal/real"
)

const oneVM = spec + `
provider "sim" "here" {}

vm "dev" {
  provider = provider.sim.here
}
`

// newRepositorySite is newSite with a repository in the folder repo.
func newRepositorySite(t *testing.T, spec string) *site {
	t.Helper()
	s := newSite(t, spec)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main", "repo"},
		{"-C", "repo", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "-q", "--allow-empty", "-m", "one"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = s.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return s
}

// One question, also where the VM is off and the workspace can be planned only once it runs. The shell has the
// terminal.
//
// row A63, of the question and the shell
func TestWorkspaceOpenAsksOnce(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newRepositorySite(t, oneVM)
	s.exits(0, "apply", "--auto-approve")
	s.exits(0, "vm", "stop", "dev")
	u := sit(t, s.vmctl("workspace", "open", "feature/x", "--repo=repo", "--path="+s.home+"/ws/x"), 100, 60)
	before := modes(t, u.keyboard)
	u.sees("Wrote the block of workspace.feature__x", `Type "yes":`)
	u.types("yes\n")
	u.sees("Open is complete")
	u.types("tty; pwd\n")
	u.sees("/dev/pts/[0-9]+\n", s.home+"/ws/x\n")
	u.types("exit 3\n")
	shown := u.leaves(3)
	if n := strings.Count(shown, `Type "yes":`); n != 1 {
		t.Errorf("%d questions:\n%s", n, shown)
	}
	if after := modes(t, u.keyboard); after != before {
		t.Errorf("the modes of the terminal were %v and are %v", before, after)
	}
	u = sit(t, s.vmctl("workspace", "open", "feature/x", "--", "sh", "-c", "tty; exit 4"), 100, 60)
	u.sees("/dev/pts/[0-9]+")
	if shown := u.leaves(4); strings.Contains(shown, "Plan") {
		t.Errorf("a plan is made of what is there:\n%s", shown)
	}
	s.exits(0, "workspace", "close", "feature/x", "--auto-approve")
	s.exits(0, "destroy", "--auto-approve")
}

// A no leaves nothing behind.
//
// row A63, of a no
func TestWorkspaceOpenTakesNoForAnAnswer(t *testing.T) {
	t.Parallel()
	s := newRepositorySite(t, oneVM)
	u := sit(t, s.vmctl("workspace", "open", "x", "--repo=repo"), 100, 60)
	u.sees(`Type "yes":`)
	u.types("no\n")
	u.sees("Took the block of workspace.x out")
	u.leaves(130)
	if _, err := os.Stat(filepath.Join(s.dir, "workspaces.vmctl.hcl")); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

// Commands that open branches at the same time take turns at the file: each block is in it whole, and once.
//
// row A63, of several at once
func TestWorkspacesOpenAtOnce(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newRepositorySite(t, spec)
	mine := "# Mine.\nlocals {\n  a = 1\n}\n"
	if err := os.WriteFile(filepath.Join(s.dir, "workspaces.vmctl.hcl"), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	const branches = 3
	var all sync.WaitGroup
	for i := range branches * 2 {
		cmd := s.vmctl("workspace", "open", fmt.Sprintf("b/%d", i/2), "--on-host", "--repo=repo", "--auto-approve", "--lock-timeout=10m", "--", "true")
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", cmd.Args[1:], err, out)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(s.dir, "workspaces.vmctl.hcl"))
	if n := strings.Count(string(text), "\nworkspace "); err != nil || n != branches {
		t.Errorf("%d blocks, want %d: %v\n%s", n, branches, err, text)
	}
	s.exits(0, "plan", "--detailed-exitcode")
	for i := range branches {
		s.exits(0, "workspace", "close", fmt.Sprintf("b/%d", i), "--auto-approve")
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "workspaces.vmctl.hcl")); err != nil || string(text) != mine {
		t.Errorf("the file is, %v,\n%s\nwant\n%s", err, text, mine)
	}
}
