package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vmctl/internal/real"
)

// manyProgram counts the programs that run beside it, itself included. An apply waits until it is let go.
const manyProgram = `#!/bin/sh
mkdir "$STANDIN/active/$$"
ls "$STANDIN/active" | wc -l >>"$STANDIN/counts"
if [ "$1" = apply ]; then
  echo >"$STANDIN/reached"
  read -r line <"$STANDIN/go"
fi
"$PROGRAM" "$@"
status=$?
rmdir "$STANDIN/active/$$"
exit $status
`

// The VMs of one module are planned by two programs each, and applied by as many programs at once as --parallelism says, and
// by no more.
func TestTerraformMany(t *testing.T) {
	real.Long(t)
	const vms, parallelism = 100, 4
	standIn, err := exec.LookPath("terraform-stand-in")
	if err != nil {
		t.Fatal(err)
	}
	k := newKilled(t, terraformProgram{path: standIn, tool: "Terraform"})
	if err := os.Remove(filepath.Join(k.dir, "hold")); err != nil { // the program itself waits
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(k.dir, "active"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.write("program", manyProgram)
	head, blocks, _ := strings.Cut(killedSpec, "vm \"a\"")
	one := "vm \"a\"" + blocks[:strings.Index(blocks, "vm \"b\"")]
	spec := head
	for i := range vms {
		spec += strings.Replace(one, `"a"`, fmt.Sprintf("%q", fmt.Sprintf("vm%d", i)), 1)
	}
	k.write("main.vmctl.hcl", spec)
	k.run(0, "plan")
	if diff := cmp.Diff(map[string]int{"version": 1, "plan": vms, "show": vms}, k.calls()); diff != "" {
		t.Errorf("programs that a plan starts (-want +got):\n%s", diff)
	}
	cmd := k.command("apply", "--auto-approve", "--parallelism="+strconv.Itoa(parallelism))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer k.end(cmd)
	if err := k.reached.SetReadDeadline(time.Now().Add(10 * time.Minute)); err != nil { // only if too few arrive
		t.Fatal(err)
	}
	for arrived, left := 0, 0; left < vms; left++ {
		for arrived < vms && arrived-left < parallelism {
			if _, err := k.arrivals.ReadString('\n'); err != nil {
				t.Fatalf("%d applies began, %d of them may end: %v, want %d at once\n%s", arrived, left, err, parallelism, out.String())
			}
			arrived++
		}
		if _, err := k.goOn.WriteString("\n"); err != nil { // one byte, which one apply reads
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text, err := os.ReadFile(filepath.Join(k.dir, "counts"))
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if most != parallelism {
		t.Errorf("at most %d programs ran at once, want %d", most, parallelism)
	}
	states, err := filepath.Glob(filepath.Join(k.home, "d", "terraform-cloud", "states", "*", "terraform.tfstate"))
	if err != nil || len(states) != vms {
		t.Errorf("%d states, %v, want %d", len(states), err, vms)
	}
}

// calls counts the calls of the stand-in, by command.
func (k *killed) calls() map[string]int {
	k.t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, "calls"))
	if err != nil {
		k.t.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(text)) {
		all[strings.Fields(line)[0]]++
	}
	return all
}
