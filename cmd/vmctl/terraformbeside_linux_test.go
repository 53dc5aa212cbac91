package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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

// Two applies of two addresses of one module at once, from one data directory: the second one waits for the first one, whose holder it
// names, and each changes its own state only. A plan goes on meanwhile.
func TestTerraformTogether(t *testing.T) {
	real.Long(t)
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		k := newKilled(t, program)
		k.write("main.vmctl.hcl", strings.Replace(killedSpec, "  id ", "  state { lock_timeout = \"1h\" }\n  id ", 1))
		k.write("point", "during")
		first := k.command("apply", "--auto-approve", "--target=vm.a")
		var out strings.Builder
		first.Stdout, first.Stderr = &out, &out
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		defer k.end(first)
		if err := k.reached.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil { // only if nothing reaches the point
			t.Fatal(err)
		}
		if line, err := k.arrivals.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v\n%s", line, err, out.String())
		}
		holder := fmt.Sprintf("(process %d on ", first.Process.Pid)
		if out := k.run(0, "plan", "--target=vm.b"); !strings.Contains(out, holder) || !strings.Contains(out, "create terraform_data.vm") {
			t.Errorf("the plan is\n%s\nwant %s", out, holder)
		}
		second := k.command("apply", "--auto-approve", "--target=vm.b")
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		second.Stdout, second.Stderr = writer, writer
		if err := second.Start(); err != nil {
			t.Fatal(err)
		}
		defer k.end(second)
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		all, waited := "", false
		for lines := bufio.NewReader(reader); ; {
			line, err := lines.ReadString('\n')
			all += line
			if !waited && strings.Contains(line, holder) {
				waited = true
				if states, err := filepath.Glob(filepath.Join(k.home, "d", "terraform-cloud", "states", "*--b--*")); err != nil || len(states) > 0 {
					t.Errorf("the second one did not wait: %v, %v", states, err)
				}
				if _, err := k.goOn.WriteString("on\n"); err != nil {
					t.Fatal(err)
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(first.Wait(), second.Wait()); err != nil || !waited {
			t.Fatalf("%v, it waited: %t\n%s\n%s", err, waited, out.String(), all)
		}
		for name, size := range map[string]string{"a": "one", "b": "b"} {
			if state := k.stateOf("d", name); !strings.Contains(state, `"vm_ip"`) || !strings.Contains(state, size) {
				t.Errorf("the state of %s is\n%s", name, state)
			}
		}
		k.run(0, "plan", "--detailed-exitcode")
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
