package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vmctl/providers"
)

func TestLife(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("plan").exits(0).says("Plan for demo: 1 to create.", "default of vm", "Next: vmctl apply")
	h.run("plan", "--detailed-exitcode").exits(2)
	if _, err := os.Stat(h.data()); !os.IsNotExist(err) {
		t.Errorf("a plan made the data directory: %v", err)
	}
	h.run("apply", "--auto-approve").exits(0).says(
		"vm.dev: starting (at most 1h)", "vm.dev: start is under way", "vm.dev: started", "Apply is complete: 3 steps done.", "vmctl vm shell vm.dev opens a shell in it",
		"vmctl vm shell vm.dev", "port = 1")
	h.acted("define vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("plan", "--detailed-exitcode").exits(0).says("No changes.")
	h.run("apply", "--auto-approve").exits(0).says("No changes.")
	h.acted()

	h.replace("256MiB", "512MiB")
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to restart", "memory  256MiB → 512MiB", "applies: restart", "! downtime vm.dev")
	h.run("apply", "--auto-approve").exits(0)
	h.acted("stop vm.dev", "redefine vm.dev", "start vm.dev", "wait_ssh vm.dev")
	h.run("show", "dev").exits(0).says("Recorded (generation 2", "last stop graceful", "512MiB")

	h.memory.machine("demo.dev").state = providers.StateOff
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to start", "drift")
	h.run("apply", "--auto-approve").exits(0)
	h.acted("start vm.dev", "wait_ssh vm.dev")

	if err := os.Remove(filepath.Join(h.data(), "state.json")); err != nil {
		t.Fatal(err)
	}
	h.run("plan", "--detailed-exitcode").exits(2).says("1 to adopt", "writes the record only")
	h.run("apply", "--auto-approve").exits(0)
	h.acted()
	h.run("plan", "--detailed-exitcode").exits(0)

	h.run("destroy", "--auto-approve").exits(0).says("Plan to destroy demo: 1 to destroy.", "! data loss vm.dev", "Destroy is complete")
	h.acted("stop vm.dev", "delete vm.dev")
	h.run("destroy", "--auto-approve").exits(0).says("There is nothing to destroy.")
}

func TestApplyAsks(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply").exits(3).says("1 to create").warns("standard input is no terminal", "vmctl apply --auto-approve")
	h.acted()
	for answer, says := range map[string]string{"no\n": `the answer was "no"`, "": "there was no answer", "y": `the answer was "y"`} {
		h.tty, h.stdin = true, strings.NewReader(answer)
		h.run("apply").exits(130).warns("nothing was done", says, `Apply these 3 steps? Type "yes":`)
		h.acted()
	}
	h.stdin = reader(func([]byte) (int, error) { return 0, syscall.EIO }) // as of a terminal that was closed
	h.run("apply").exits(130).warns("nothing was done", "there was no answer")
	h.acted()
	h.stdin = strings.NewReader("yes\n")
	h.run("apply").exits(0)
	h.acted("define vm.dev", "start vm.dev", "wait_ssh vm.dev")
}

func TestAnInterruptAtThePromptDoesNothing(t *testing.T) {
	h := newHouse(t, withID+small)
	ctx, cancel := context.WithCancel(t.Context())
	h.tty, h.stdin = true, reader(func([]byte) (int, error) {
		cancel()
		<-make(chan struct{}) // a terminal at which nobody types
		return 0, nil
	})
	h.runIn(ctx, "apply").exits(130).warns("nothing was done")
	h.acted()
}

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

func brokenStart() *providers.Problem {
	return &providers.Problem{
		Outcome: providers.Failed, Code: "guest_paused", Seen: []string{"libvirt: paused"}, Next: providers.Say(`set accel = "tcg"`),
		Err: errors.New("the hypervisor paused it at once"),
	}
}

func TestAFailingStart(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["start vm.dev"] = brokenStart()
	h.run("apply", "--auto-approve").exits(1).warns(
		"Apply failed: 1 step done, 1 failed, 1 not run.", "vm.dev define", "vm.dev start: the hypervisor paused it at once",
		"seen: libvirt: paused", `next: set accel = "tcg"`, "vm.dev wait_ssh", "vmctl apply goes on from here")
	delete(h.memory.fail, "start vm.dev")
	h.acted("define vm.dev")
	h.run("plan").exits(0).says("1 to start")
	h.run("apply", "--auto-approve").exits(0)
	h.acted("start vm.dev", "wait_ssh vm.dev")
}

func TestAFailingStartGolden(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["start vm.dev"] = brokenStart()
	e := h.run("apply", "--auto-approve").exits(1)
	golden(t, "failing-start", e.stdout+"--- standard error ---\n"+e.stderr)
}

// The next command repeats the flags that choose the files, without the values of sensitive variables.
func TestTheNextCommandFits(t *testing.T) {
	h := newHouse(t, withID+"variable \"size\" {\n  type = string\n}\nvariable \"s\" {\n  type = string\n  sensitive = true\n}\n"+strings.ReplaceAll(small, `"256MiB"`, "var.size"))
	h.run("plan", "--var=size=1GiB", "--var=s=a-secret", "--env=test", "--target=dev", "--allow-replace=vm.dev").exits(0).
		says("Next: vmctl apply --env=test --var=size=1GiB --target=dev --allow-replace=vm.dev")
}

func TestWhatIsDownIsSaid(t *testing.T) {
	h := newHouse(t, withID+small)
	h.run("apply", "--auto-approve").exits(0)
	h.replace("256MiB", "512MiB")
	h.memory.fail["redefine vm.dev"] = brokenStart()
	h.run("apply", "--auto-approve").exits(1).warns("Down: vm.dev was taken down by this run and is not up again.")
}

func TestABlockedPlanStartsNothing(t *testing.T) {
	h := newHouse(t, withID+small+`
vm "other" {
  boot {
    kernel = "vmlinuz"
  }
}
`)
	h.memory.machines["1"] = &machine{name: "demo.dev", state: providers.StateOff}
	h.run("plan").exits(0).says("! blocked vm.dev", "Apply would start nothing: 1 blocked.",
		"To carry out the rest: vmctl apply --exclude=vm.dev")
	h.run("plan", "--detailed-exitcode").exits(2)
	h.run("apply", "--auto-approve").exits(6).says("vmctl apply --exclude=vm.dev").warns("nothing was started")
	h.acted()
	h.run("apply", "--auto-approve", "--exclude=vm.dev").exits(0)
	h.acted("define vm.other", "start vm.other", "wait_ssh vm.other")
}

// row X08, of a system that cannot be read: nothing is changed
func TestUnknownStartsNothing(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.partial = providers.Refuse("libvirt's client library is not installed",
		append(providers.Say("install it: sudo apt-get install libvirt0"), providers.SayVmctl("or see who needs it: ", "state", "list")...))
	// rows L65, A59: what is missing is named, with who needs it
	h.run("plan").exits(6).says("! unknown vm.dev", "libvirt's client library is not installed\n      install it: sudo apt-get", "Apply would start nothing: 1 unknown.")
	h.run("apply", "--auto-approve").exits(6)
	h.run("destroy", "--auto-approve").exits(6)
	h.acted()
	h.run("doctor").exits(1).says("missing", "libvirt's client library is not installed", "needed by: vm.dev",
		"next: install it: sudo apt-get install libvirt0")
	for _, command := range []string{"plan", "doctor", "status", "show vm.dev"} {
		line := append(strings.Fields(command), "--env=two")
		h.run(line...).says("install it: sudo apt-get install libvirt0", "or see who needs it: vmctl --env=two state list")
	}
	h.memory.partial = nil
	h.run("doctor").exits(0).says("memory version 1", "Nothing that is needed is missing.")
	h.memory.missing = providers.Refuse("libvirt finds no QEMU", providers.Say("install it: sudo apt-get install qemu-system-x86"))
	h.run("doctor").exits(1).says("missing  provider.libvirt.default: libvirt finds no QEMU", "needed by: vm.dev",
		"next: install it: sudo apt-get install qemu-system-x86")
	h.memory.missing, h.memory.blind = nil, providers.Refuse("read the facts: no answer", nil)
	h.run("doctor").exits(0).says("warning  provider.libvirt.default: read the facts: no answer")
}

// row E12: the scope is closed under what its members need
func TestScope(t *testing.T) {
	h := newHouse(t, withID+small+`
vm "app" {
  depends_on = [vm.dev]
  boot {
    kernel = "vmlinuz"
  }
}
`)
	h.run("plan", "--target=vm.app").exits(0).says("2 to create")
	h.run("plan", "--exclude=vm.dev").exits(0).says("nothing is wanted")
	h.run("plan", "--target=app", "--exclude=dev").exits(3).warns("target vm.app needs vm.dev, which is excluded")
	h.run("plan", "--target=dav").exits(3).warns(`"dav" is not a resource of the spec.`, `Did you mean "dev"?`)
	h.run("plan", "--help").exits(0).says("With --target, the plan also contains what the target needs.")
}

func TestARunLockIsNamed(t *testing.T) {
	h := newHouse(t, withID+small)
	entered, hold := make(chan string), make(chan struct{})
	h.memory.entered, h.memory.hold["start vm.dev"] = entered, hold
	first := make(chan ending)
	go func() { first <- h.run("apply", "--auto-approve") }()
	for op := range entered {
		if op == "start vm.dev" {
			break
		}
	}
	h.run("status").exits(0).says("the run lock is held by vmctl apply", "vm.dev    stopped")
	h.run("plan").exits(0).says("Note: the run lock is held by vmctl apply")
	h.run("apply", "--auto-approve", "--lock-timeout=0s").exits(7).warns("vmctl apply")
	h.memory.mu.Lock()
	h.memory.entered = nil
	h.memory.mu.Unlock()
	close(hold)
	(<-first).exits(0)
}

// row A46, by its exit code: a wait that ends too late
func TestADeadlineHasItsOwnCode(t *testing.T) {
	h := newHouse(t, withID+small)
	h.memory.fail["wait_ssh vm.dev"] = &providers.Problem{
		Outcome: providers.Timeout, Code: "no_ssh", Next: providers.Say("read the boot log: console.log"), Err: errors.New("SSH did not answer within 5m"),
	}
	h.run("apply", "--auto-approve").exits(4).warns("SSH did not answer within 5m", "next: read the boot log: console.log")
	h.memory.fail["wait_ssh vm.dev"].Outcome = providers.Stale
	h.run("vm", "restart", "dev").exits(6)
}
