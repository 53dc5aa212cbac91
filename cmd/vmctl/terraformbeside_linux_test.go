package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/internal/real"
)

// Two applies of one module at once, from two data directories, change their own states only: no workspace is selected for both.
//
// row A40, of Terraform
func TestTerraformBeside(t *testing.T) {
	real.Long(t)
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		k := newKilled(t, program)
		if program.isReal { // workspaces, which the stand-in has not
			k.write(filepath.Join("infra", "backend.tf"), "terraform {\n  backend \"local\" {}\n}\n")
		}
		k.write("point", "during")
		cmd := k.command("apply", "--auto-approve", "--target=vm.a")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer k.end(cmd)
		if err := k.reached.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil { // only if nothing reaches the point
			t.Fatal(err)
		}
		if line, err := k.arrivals.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v\n%s", line, err, out.String())
		}
		beside := k.command("apply", "--auto-approve", "--target=vm.b")
		beside.Env = append(beside.Env, "HOME="+filepath.Join(k.home, "beside"), "VMCTL_DATA_DIR="+filepath.Join(k.home, "beside", "d"))
		if out, err := beside.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		before := k.stateOf("beside/d", "b")
		if _, err := k.goOn.WriteString("on\n"); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if after := k.stateOf("beside/d", "b"); after != before || !strings.Contains(after, `"vm_ip"`) {
			t.Errorf("the state of b was\n%s\nand is\n%s", before, after)
		}
		if a := k.stateOf("d", "a"); !strings.Contains(a, `"vm_ip"`) || !strings.Contains(a, "one") {
			t.Errorf("the state of a is\n%s", a)
		}
		k.run(0, "plan", "--detailed-exitcode", "--target=vm.a")
	})
}

// stateOf returns the state of a VM in a data directory.
func (k *killed) stateOf(dir, name string) string {
	k.t.Helper()
	paths, err := filepath.Glob(filepath.Join(k.home, dir, "terraform-cloud", "states", "*--"+name+"--*", "terraform.tfstate"))
	if err != nil || len(paths) != 1 {
		k.t.Fatalf("states of %s: %v, %v", name, paths, err)
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}
