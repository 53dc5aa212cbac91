package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vmctl/internal/real"
)

var operatorRounds = flag.Int("operator-rounds", 20, "how often two operators make the same VM at once")

// sharedSpec is a project on a host that several data directories share.
const sharedSpec = spec + `
variable "memory" {
  default = "256MiB"
}

provider "sim" "here" {
  folder = "host"
}

disk "work" {
  provider = provider.sim.here
  size     = "1MiB"
}

vm "dev" {
  provider = provider.sim.here
  cpus     = 1
  memory   = var.memory

  additional_disk {
    disk = disk.work
  }
}
`

// operator is a person with a data directory of their own.
type operator struct {
	*site
	name string
}

func operators(t *testing.T) (one, two operator) {
	t.Helper()
	s := newSite(t, sharedSpec)
	t.Cleanup(func() { endAll(t, s.dir) })
	return operator{s, "one"}, operator{s, "two"}
}

func (o operator) vmctl(args ...string) *exec.Cmd {
	cmd := o.site.vmctl(args...)
	cmd.Env = append(cmd.Env, "VMCTL_DATA_DIR="+filepath.Join(o.home, o.name))
	return cmd
}

// does runs vmctl to its end, demands success, and returns the output.
func (o operator) does(args ...string) string {
	o.t.Helper()
	out, err := o.vmctl(args...).CombinedOutput()
	if err != nil {
		o.t.Fatalf("%s: vmctl %v: %v\n%s", o.name, args, err, out)
	}
	return string(out)
}

// seesNothingToDo fails unless the operator's plan is empty.
func (o operator) seesNothingToDo(more ...string) {
	o.t.Helper()
	o.does(append([]string{"plan", "--detailed-exitcode"}, more...)...)
}

// objects returns the file of the one VM, with its ID, and the mark of its disk.
func (s *site) objects() string {
	s.t.Helper()
	var all strings.Builder
	for _, file := range []string{"host/vms/demo.dev.json", "host/disks/demo.work.mark"} {
		text, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil {
			s.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// nothingLeft fails if the host has anything left but its lock and its count of faults.
func (s *site) nothingLeft() {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "host"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "turn.lock" && e.Name() != "faults" {
			s.t.Errorf("left: %s", e.Name())
		}
	}
	if all, err := processesIn(s.dir); err != nil || len(all) > 0 {
		s.t.Errorf("left: %v, %v", all, err)
	}
}

// Two operators make the same VM at once: one makes it, and the other one touches nothing.
// Then both find nothing to do, also after either has changed the VM.
//
// row A19, of two operators
func TestTwoOperatorsAtOnce(t *testing.T) {
	real.Long(t)
	rounds := *operatorRounds
	one, two := operators(t)
	lost := 0
	for round := range rounds {
		var said [2]bytes.Buffer
		var both [2]*exec.Cmd
		for i, o := range []operator{one, two} {
			both[i] = o.vmctl("apply", "--auto-approve")
			both[i].Stdout, both[i].Stderr = &said[i], &said[i]
			if err := both[i].Start(); err != nil {
				t.Fatal(err)
			}
		}
		codes := ""
		for _, cmd := range both {
			_ = cmd.Wait() //nolint:errcheck // its code says it
			codes += fmt.Sprint(cmd.ProcessState.ExitCode())
		}
		switch codes {
		case "00":
		case "06", "60":
			lost++
			loser := said[strings.Index(codes, "6")].String()
			if !strings.Contains(loser, "code: made_elsewhere") && !strings.Contains(loser, "code: stale_plan") {
				t.Fatalf("round %d: who came second says\n%s", round, loser)
			}
		default:
			t.Fatalf("round %d: exit codes %s\n%s\n%s", round, codes, said[0].String(), said[1].String())
		}
		made := one.objects()
		if all, err := processesIn(one.dir); err != nil || len(all) != 1 {
			t.Fatalf("round %d: processes of the one VM: %v, %v", round, all, err)
		}
		one.does("apply", "--auto-approve")
		two.does("apply", "--auto-approve")
		if now := one.objects(); now != made {
			t.Fatalf("round %d: made\n%s\nand now it is\n%s", round, made, now)
		}
		one.seesNothingToDo()
		two.seesNothingToDo()
		first, other := one, two
		if round%2 == 1 {
			first, other = two, one
		}
		first.does("apply", "--auto-approve", "--var=memory=512MiB")
		other.seesNothingToDo("--var=memory=512MiB")
		first.seesNothingToDo("--var=memory=512MiB")
		other.does("destroy", "--auto-approve")
		first.does("destroy", "--auto-approve")
		one.nothingLeft()
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds; in %d of them one was too late", rounds, lost)
}

// One operator is killed before, or fails in the middle of, each step of making objects. The
// other one goes on: nothing is lost, left over or made twice. Each operator has locks of
// their own.
//
// row X13, of two operators who make
// row A13, of two operators
// row A14, of two operators
func TestAnOperatorGoesOnForAnother(t *testing.T) {
	real.Long(t)
	for _, strike := range []struct{ op, address, kind string }{
		{"define", "disk.work", "hang"},
		{"define", "disk.work", "partial"},
		{"define", "vm.dev", "hang"},
		{"define", "vm.dev", "partial"},
		{"start", "vm.dev", "hang"},
		{"start", "vm.dev", "partial"},
		{"wait_ready", "vm.dev", "hang"},
	} {
		t.Run(fmt.Sprint(strike.op, " ", strike.address, " ", strike.kind), func(t *testing.T) {
			t.Parallel()
			one, two := operators(t)
			fault := fmt.Sprintf("folder = \"host\"\n\n  fault {\n    op      = %q\n    address = %q\n    kind    = %q\n    times   = 1\n  }\n", strike.op, strike.address, strike.kind)
			one.write(strings.Replace(sharedSpec, "folder = \"host\"\n", fault, 1))
			cmd := one.vmctl("apply", "--auto-approve")
			var said bytes.Buffer
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if strike.kind == "hang" {
				one.awaitFault()
				one.holds(cmd.Process.Pid, two)
				one.end(cmd)
			}
			if err := cmd.Wait(); err == nil {
				t.Fatalf("nothing kept it from its end:\n%s", said.String())
			}
			two.does("apply", "--auto-approve")
			two.seesNothingToDo()
			made := two.objects()
			one.does("apply", "--auto-approve")
			one.seesNothingToDo()
			two.seesNothingToDo()
			if now := two.objects(); now != made {
				t.Errorf("the other one made\n%s\nand now it is\n%s", made, now)
			}
			if all, err := processesIn(one.dir); err != nil || len(all) != 1 {
				t.Errorf("processes of the one VM: %v, %v", all, err)
			}
			one.does("destroy", "--auto-approve")
			two.does("destroy", "--auto-approve")
			one.nothingLeft()
		})
	}
}

// holds fails unless a process holds the operator's run lock, and does not hold the other
// operator's.
func (o operator) holds(pid int, other operator) {
	o.t.Helper()
	who := fmt.Sprintf("process %d ", pid)
	if said := o.does("lock", "list"); !strings.Contains(said, who) {
		o.t.Errorf("%s has the locks\n%s", o.name, said)
	}
	if said, code := ran(o.t, o.vmctl("lock", "release", "lock")); code != 7 || !strings.Contains(said, "its holder lives") {
		o.t.Errorf("%s releases a lock that is held: exit code %d\n%s", o.name, code, said)
	}
	if said := other.does("lock", "list"); strings.Contains(said, who) {
		o.t.Errorf("%s has the locks\n%s", other.name, said)
	}
}

func (s *site) write(text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "main.vmctl.hcl"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// faultLimit is the time that a fault has to strike. It only separates a hang from slowness.
const faultLimit = 10 * time.Minute

// awaitFault returns once a fault has struck.
func (s *site) awaitFault() {
	s.t.Helper()
	for end := time.Now().Add(faultLimit); time.Now().Before(end); {
		if _, err := os.Stat(filepath.Join(s.dir, "host", "faults")); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("waited in vain for %s for a fault to strike", faultLimit)
}

// The other operator makes again what the first one has destroyed, if the spec still has it.
//
// row A18, of two operators
func TestAnOperatorDestroysWhatAnotherMade(t *testing.T) {
	real.Long(t)
	one, two := operators(t)
	one.does("apply", "--auto-approve")
	two.does("apply", "--auto-approve")
	two.does("destroy", "--auto-approve")
	two.nothingLeft()
	if said, code := ran(t, one.vmctl("plan", "--detailed-exitcode")); code != 2 || !strings.Contains(said, "Plan for demo: 2 to create.") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	one.does("apply", "--auto-approve")
	one.seesNothingToDo()
	two.does("apply", "--auto-approve")
	two.seesNothingToDo()
	two.does("destroy", "--auto-approve")
	one.does("destroy", "--auto-approve")
	one.nothingLeft()
}

// A data directory is lost, and another operator goes on. When the directory comes back from
// a backup, nothing is deleted because of its old records.
//
// row X15, of two operators
func TestADataDirectoryComesBack(t *testing.T) {
	one, two := operators(t)
	one.does("apply", "--auto-approve")
	kept := filepath.Join(one.home, "one")
	if err := os.Rename(kept, kept+".backup"); err != nil {
		t.Fatal(err)
	}
	two.does("destroy", "--auto-approve") // what it has adopted
	two.write(sharedSpec + "vm \"new\" {\n  provider = provider.sim.here\n}\n")
	two.does("apply", "--auto-approve")
	made := two.objects()
	if err := os.Rename(kept+".backup", kept); err != nil {
		t.Fatal(err)
	}
	one.write(sharedSpec) // as it was
	said := one.does("apply", "--auto-approve")
	if !strings.Contains(said, "orphan vm.new, object demo.new") {
		t.Errorf("of what it knows nothing of it says\n%s", said)
	}
	if now := two.objects(); now != made {
		t.Errorf("there was\n%s\nand now there is\n%s", made, now)
	}
	if all, err := processesIn(one.dir); err != nil || len(all) != 2 {
		t.Errorf("processes of the two VMs: %v, %v", all, err)
	}
	one.seesNothingToDo()
}

// An operator with a fresh data directory, like that of a CI job, follows a moved block.
func TestAFreshDirectoryFollowsAMovedBlock(t *testing.T) {
	one, two := operators(t)
	one.does("apply", "--auto-approve")
	before, err := processesIn(one.dir)
	if err != nil {
		t.Fatal(err)
	}
	one.write(strings.Replace(sharedSpec, `vm "dev"`, `vm "box"`, 1) + "moved {\n  from = vm.dev\n  to   = vm.box\n}\n")
	said := two.does("apply", "--auto-approve")
	if !strings.Contains(said, "a moved block leads here from the address that the owner mark names") {
		t.Errorf("it says\n%s", said)
	}
	two.seesNothingToDo()
	one.does("apply", "--auto-approve")
	one.seesNothingToDo()
	two.seesNothingToDo()
	if after, err := processesIn(one.dir); err != nil || !slices.Equal(before, after) {
		t.Errorf("there ran %v, and now there is %v, %v", before, after, err)
	}
	two.does("destroy", "--auto-approve")
	one.does("destroy", "--auto-approve")
	one.nothingLeft()
}
