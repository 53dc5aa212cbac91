package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vmctl/internal/process"
	"vmctl/internal/real"
)

// killedModule has one resource, which a provisioner makes and destroys.
const killedModule = `variable "size" { type = string }
resource "terraform_data" "vm" {
  input            = var.size
  triggers_replace = var.size
  provisioner "local-exec" {
    command = "$STANDIN/hold during"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "$STANDIN/hold during"
  }
}
output "vm_ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
`

const killedSpec = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}
provider "terraform" "cloud" {
  dir    = "infra"
  binary = "./program"
}
vm "a" {
  provider  = provider.terraform.cloud
  variables = { size = "one" }
  outputs   = { address = "vm_ip" }
  ssh {
    wait = false
  }
  lifecycle { on_change = { variables = "replace" } }
}
vm "b" {
  provider  = provider.terraform.cloud
  variables = { size = "b" }
  outputs   = { address = "vm_ip" }
  ssh {
    wait = false
  }
}
`

// The program that vmctl runs as Terraform: it waits at a point for the test.
const killedProgram = `#!/bin/sh
case "$1" in plan|apply) ;; *) exec "$PROGRAM" "$@" ;; esac
case "$*" in *-lock=false*) exec "$PROGRAM" "$@" ;; esac
"$STANDIN/hold" before-$1
[ "$(cat "$STANDIN/point")" = after-$1 ] || exec "$PROGRAM" "$@"
"$PROGRAM" "$@"
status=$?
"$STANDIN/hold" after-$1
exit $status
`

// A process that reaches the point in the file waits once, until it is let go.
const holdAt = `#!/bin/sh
[ "$(cat "$STANDIN/point")" = "$1" ] || exit 0
echo >"$STANDIN/point"
echo "$PPID" >"$STANDIN/reached"
read -r line <"$STANDIN/go"
`

// killed is a site whose Terraform waits at points, until the test lets it go.
type killed struct {
	*site
	reached   *os.File
	arrivals  *bufio.Reader // of reached
	goOn      *os.File
	terraform terraformProgram
	environ   []string // of vmctl, beyond what all have
}

func newKilled(t *testing.T, program terraformProgram) *killed {
	t.Helper()
	k := &killed{site: newSite(t, killedSpec), terraform: program}
	for name, text := range map[string]string{"program": killedProgram, "hold": holdAt, "point": ""} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // they are run
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"infra", "temp"} {
		if err := os.Mkdir(filepath.Join(k.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"main.tf": killedModule, "outputs.json": `{"vm_ip": "192.0.2.7"}`} {
		if err := os.WriteFile(filepath.Join(k.dir, "infra", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(name string) *os.File {
		path := filepath.Join(k.dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		})
		return file
	}
	k.reached, k.goOn = pipe("reached"), pipe("go")
	k.arrivals = bufio.NewReader(k.reached)
	return k
}

func (k *killed) command(args ...string) *exec.Cmd {
	cmd := k.vmctl(args...)
	cmd.Env = slices.Concat(cmd.Env, k.environ, []string{"STANDIN=" + k.dir, "PROGRAM=" + k.terraform.path, "XDG_RUNTIME_DIR=" + filepath.Join(k.dir, "temp")})
	return cmd
}

// run runs vmctl to its end, demands an exit code, and returns the output.
func (k *killed) run(code int, args ...string) string {
	k.t.Helper()
	cmd := k.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		k.t.Fatalf("vmctl %v: %v, want exit code %d:\n%s", args, err, code, out)
	}
	return string(out)
}

func (k *killed) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// endsWith kills vmctl, and checks that the Terraform that plans ends with it: it has nothing to write.
func (k *killed) endsWith(cmd *exec.Cmd, line string) {
	k.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		k.t.Fatal(err)
	}
	planning, err := process.Host{}.Capture(k.t.Context(), pid)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = cmd.Wait() //nolint:errcheck // it was killed
	limit, cancel := context.WithTimeout(k.t.Context(), 5*time.Minute)
	defer cancel()
	if err := (process.Host{}).Wait(limit, planning); err != nil {
		k.t.Errorf("the plan goes on: %v", err)
	}
	if _, err := k.goOn.WriteString("on\n"); err != nil { // to the child of the script
		k.t.Fatal(err)
	}
	if records := k.records(); len(records) > 0 {
		k.t.Errorf("nothing has begun, and there are %v", records)
	}
}

// killAt runs vmctl until its Terraform reaches a point, kills it, and returns the Terraform that lives on, if one does.
func (k *killed) killAt(point string, args ...string) []process.Identity {
	k.t.Helper()
	k.write("point", point)
	cmd := k.command(args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	defer k.end(cmd)
	if err := k.reached.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil { // only if nothing reaches the point
		k.t.Fatal(err)
	}
	line, err := k.arrivals.ReadString('\n')
	if err != nil {
		k.t.Fatalf("%s: %q, %v\n%s", point, line, err, out.String())
	}
	if strings.HasSuffix(point, "-plan") {
		k.endsWith(cmd, line)
		return nil
	}
	var left []process.Identity
	for _, path := range k.records() {
		var r struct {
			Process process.Identity `json:"process"`
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			k.t.Fatal(err)
		}
		left = append(left, r.Process)
	}
	for _, id := range left { // as a closed terminal does
		if err := syscall.Kill(id.PID, syscall.SIGHUP); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = cmd.Wait() //nolint:errcheck // it was killed
	return left
}

// records lists the records of Terraforms that write a state.
func (k *killed) records() []string {
	k.t.Helper()
	all, err := filepath.Glob(filepath.Join(k.home, "d", "terraform-cloud", "states", "*", "running"))
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

// A killed vmctl leaves Terraform at work: it writes the state, no second one is started, and one further run of vmctl does the
// rest and leaves nothing behind.
//
// row A56
func TestTerraformOutlivesVmctl(t *testing.T) {
	real.Long(t)
	withTerraforms(t, func(t *testing.T, program terraformProgram) {
		points := []string{"before-plan", "after-plan", "before-apply", "during", "after-apply"}
		if program.tool == "OpenTofu" {
			points = []string{"during"} // a sample: Terraform is killed at all
		}
		for _, point := range points {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				testKilled(t, program, point)
			})
		}
	})
}

// Variables that some shells lose reach a Terraform that writes a state, and it outlives vmctl as any other.
func TestTerraformGetsEveryVariable(t *testing.T) {
	real.Long(t)
	standIn, err := exec.LookPath("terraform-stand-in")
	if err != nil {
		t.Fatal(err)
	}
	k := newKilled(t, terraformProgram{path: standIn, tool: "Terraform"})
	k.environ = []string{"TF_TOKEN_my-host_com=token"}
	k.write("main.vmctl.hcl", strings.Replace(killedSpec, "./program", standIn, 1)) // no shell is between
	args := []string{"apply", "--auto-approve", "--target=vm.a"}
	k.outlives("create", k.killAt("during", args...), args)
	k.run(0, args...)
	k.run(0, "destroy", "--auto-approve")
	k.leavesNothing("with such a variable")
	calls, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	for call := range strings.Lines(string(calls)) {
		if !strings.Contains(call, " TF_TOKEN_my-host_com") {
			t.Errorf("the variable has not reached %s", call)
		}
		if strings.Contains(call, "VMCTL_") {
			t.Errorf("what vmctl tells itself has reached %s", call)
		}
	}
}

func testKilled(t *testing.T, program terraformProgram, point string) {
	k := newKilled(t, program)
	k.run(0, "apply", "--auto-approve", "--target=vm.b")
	both := []string{"apply", "--auto-approve"}
	for _, act := range []struct {
		name  string
		edit  string // of the spec, before
		args  []string
		empty []string // the plan that has nothing left to do
	}{
		{"create", "", both, []string{"plan", "--detailed-exitcode"}},
		{"edit", "replace-two", both, []string{"plan", "--detailed-exitcode"}},
		{"destroy of one", "", []string{"destroy", "--auto-approve", "--target=vm.a"}, []string{"plan", "--destroy", "--detailed-exitcode", "--target=vm.a"}},
		{"destroy of the last", "", []string{"destroy", "--auto-approve"}, []string{"plan", "--destroy", "--detailed-exitcode"}},
	} {
		if act.edit != "" {
			k.write("main.vmctl.hcl", strings.Replace(killedSpec, "one", act.edit, 1))
		}
		left := k.killAt(point, act.args...)
		if !strings.HasSuffix(point, "-plan") {
			k.outlives(act.name, left, act.args)
		}
		k.run(0, act.args...)
		k.run(0, act.empty...)
		k.leavesNothing(act.name)
	}
	if left, err := os.ReadDir(filepath.Join(k.home, "d", "terraform-cloud", "states")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// outlives checks that Terraform lives on, and that nothing is started beside it. Then it waits for its end.
func (k *killed) outlives(name string, left []process.Identity, args []string) {
	k.t.Helper()
	if len(left) != 1 {
		k.t.Fatalf("%s: %d records of a Terraform that lives on, want 1", name, len(left))
	}
	if verdict, reason := (process.Host{}).Verify(left[0]); verdict == process.Gone || verdict == process.Reused {
		k.t.Fatalf("%s: Terraform has ended with vmctl: %s", name, reason)
	}
	if out := k.run(6, "plan"); !strings.Contains(out, "the "+k.terraform.tool+" of a killed vmctl (apply, pid") || !strings.Contains(out, "wait until pid") {
		k.t.Errorf("%s: the plan is\n%s", name, out)
	}
	if out := k.run(6, args...); !strings.Contains(out, "still writes its state") {
		k.t.Errorf("%s: a second run says\n%s", name, out)
	}
	if _, err := k.goOn.WriteString("on\n"); err != nil {
		k.t.Fatal(err)
	}
	if err := (process.Host{}).Wait(k.t.Context(), left...); err != nil {
		k.t.Fatal(err)
	}
	if state := k.state(); name == "create" || name == "edit" {
		if !strings.Contains(state, `"vm_ip"`) || strings.Contains(state, "tainted") {
			k.t.Errorf("%s: Terraform has not written its state to the end:\n%s", name, state)
		}
	} else if strings.Contains(state, `"managed"`) {
		k.t.Errorf("%s: Terraform has not written its state to the end:\n%s", name, state)
	}
}

// state returns the state of the workspace in which Terraform was at work.
func (k *killed) state() string {
	k.t.Helper()
	records := k.records()
	if len(records) != 1 {
		k.t.Fatalf("records: %v, want 1", records)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(records[0]), "terraform.tfstate"))
	if err != nil {
		k.t.Fatal(err)
	}
	return string(text)
}

// leavesNothing checks that no short-lived file is left.
func (k *killed) leavesNothing(name string) {
	k.t.Helper()
	files, err := os.ReadDir(filepath.Join(k.dir, "temp"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "vmctl-t") {
			k.t.Errorf("%s: %s is left", name, f.Name())
		}
	}
	if records := k.records(); len(records) > 0 {
		k.t.Errorf("%s: left are %v", name, slices.Sorted(slices.Values(records)))
	}
}
