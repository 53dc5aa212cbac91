package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/real"
)

const layered = spec + `
provider "sim" "here" {}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = "256MiB"
}

box "motd" {
  in      = vm.dev
  label   = "motd"
  running = false
}
`

// Each round asks about its own steps: deferred ones are asked about once they are planned,
// and not before. A no leaves them undone.
func TestEachRoundIsAskedAbout(t *testing.T) {
	real.Long(t)
	t.Parallel()
	s := newSite(t, layered)
	s.exits(0, "apply", "--auto-approve", "--exclude=box.motd")
	s.exits(0, "vm", "stop", "dev")
	u := sit(t, s.vmctl("apply"), 100, 60)
	u.sees("1 deferred", `box.motd read after vm.dev is ready`, "Apply these 2 steps")
	u.types("yes\n")
	u.sees(`Done so far: 2 steps done`, `box.motd create`, "Apply this step")
	u.types("no\n")
	u.sees(`apply: the rest was not done: the answer was "no", not "yes"`)
	u.leaves(130)
	if out := s.exits(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "1 to create, 1 unchanged") {
		t.Errorf("the plan is\n%s", out)
	}
	u = sit(t, s.vmctl("apply"), 100, 60)
	u.sees("Apply this step")
	u.types("yes\n")
	u.leaves(0)
	s.exits(0, "plan", "--detailed-exitcode")

	// The steps of a saved plan need no consent, since the user has read them; deferred steps
	// do.
	s.exits(0, "vm", "stop", "dev")
	changed := strings.Replace(layered, `label   = "motd"`, `label   = "issue"`, 1)
	if err := os.WriteFile(filepath.Join(s.dir, "main.vmctl.hcl"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	s.exits(0, "plan", "--out=p.vmplan")
	u = sit(t, s.vmctl("apply", "p.vmplan"), 100, 60)
	u.sees("1 to replace", "Apply these 2 steps")
	u.types("yes\n")
	u.leaves(0)
	s.exits(0, "plan", "--detailed-exitcode")
}

// editor writes a script that stands in for a person's editor, and returns its path.
func (s *site) editor(script string) string {
	s.t.Helper()
	path := filepath.Join(s.home, "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is to be run
		s.t.Fatal(err)
	}
	return path
}

// row L52: what has mistakes is offered again, and what is right is written
func TestEditAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, layered)
	cmd := s.vmctl("vm", "edit", "dev")
	cmd.Env = append(cmd.Env, "TMPDIR="+s.home, "EDITOR="+s.editor(`
read -r value
sed -i "s/cpus     = .*/cpus     = $value/" "$1"
`))
	u := sit(t, cmd, 100, 60)
	u.types("none\n")
	u.sees("Edit again", `cpus     = none`)
	u.types("yes\n4\n")
	u.sees("Wrote main.vmctl.hcl.", "Next: vmctl plan")
	u.leaves(0)
	text, err := os.ReadFile(filepath.Join(s.dir, "main.vmctl.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(layered, "cpus     = 1", "cpus     = 4", 1); string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	if left, err := filepath.Glob(filepath.Join(s.home, "vmctl-edit-*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// While an editor has the terminal, an interrupt from the keyboard is the editor's. This
// editor sleeps in wait, which ends also for a signal that came just before; read would sleep
// on.
func TestAnInterruptIsTheEditors(t *testing.T) {
	t.Parallel()
	s := newSite(t, layered)
	cmd := s.vmctl("vm", "edit", "dev")
	cmd.Env = append(cmd.Env, "TMPDIR="+s.home, "EDITOR="+s.editor(`
trap 'echo heard' INT
exec 3<&0
{ echo ready; read -r value <&3; echo "$value" >"$1.value"; } &
while kill -0 $! 2>/dev/null; do wait $!; done
sed -i "s/cpus     = .*/cpus     = $(cat "$1.value")/" "$1"
`))
	u := sit(t, cmd, 100, 60)
	u.sees("ready")
	u.types(controlC)
	u.sees("heard")
	u.types(controlC)
	u.sees("heard(?s:.*)heard")
	u.types("2\n")
	u.sees("Wrote main.vmctl.hcl.")
	u.leaves(0)
}
