package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vmctl/busy"
	"vmctl/spec"
	"vmctl/state"
)

// asked is an input that calls first before its first read.
type asked struct {
	io.Reader
	first func()
}

func (a *asked) Read(p []byte) (int, error) {
	if a.first != nil {
		first := a.first
		a.first = nil
		first()
	}
	return a.Reader.Read(p)
}

// meanwhile returns the same house for another user, who types nothing.
func (h *house) meanwhile() *house {
	return &house{t: h.t, dir: h.dir, home: h.home, memory: h.memory, environ: h.environ}
}

// While a command or a shell runs in a VM, a command that would take the VM down names that
// program, without its arguments.
func TestExecHoldsItsVM(t *testing.T) {
	h := inhabited(t)
	other := h.meanwhile()
	h.stdin = &asked{Reader: strings.NewReader(""), first: func() {
		other.run("vm", "stop", "dev").exits(6).
			says("blocked vm.dev: it is busy: vmctl vm exec vm.dev -- sh (pid ", "since 2026-03-01 12:00:00 UTC", "--allow-interrupt=vm.dev").
			silent("secret")
		other.run("destroy", "--auto-approve", "--json").exits(6).says(`"kind":"busy","address":"vm.dev"`, "vmctl vm exec vm.dev -- sh").
			silent("secret")
		other.run("plan").exits(0).says("No changes").silent("busy")
		other.run("vm", "exec", "dev", "--", "false").exits(1)
	}}
	h.run("vm", "exec", "dev", "--", "sh", "-c", "cat; exit 7", "secret").exits(7)
	h.memory.acted = nil
	h.stdin = nil
	h.run("vm", "stop", "dev").exits(0)
	h.acted("stop vm.dev")
}

// A failure before the command runs leaves nobody inside.
func TestWhoDoesNotGetInIsNotInside(t *testing.T) {
	h := inhabited(t)
	h.memory.machine("demo.dev").attrs["ssh_port"] = h.memory.machine("demo.dev").attrs["cpus"] // 1: nobody listens
	h.run("vm", "exec", "dev", "--", "true").exits(255)
	h.run("vm", "exec", "nobody", "--", "true").exits(255)
	h.run("vm", "stop", "dev").exits(0)
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("vm.dev is not running: it is stopped")
	h.run("destroy", "--auto-approve").exits(0)
}

// A visitor who enters between the plan and its consent is seen before the VM is touched.
func TestBusySinceThePlanWasShown(t *testing.T) {
	h := inhabited(t)
	h.memory.acted = nil
	f := busy.Folder{Dir: filepath.Join(h.data(), "busy")}
	leave := func() error { return nil }
	h.tty = true
	h.stdin = &asked{Reader: strings.NewReader("yes\n"), first: func() {
		var err error
		leave, err = f.Enter(t.Context(), spec.Address{Kind: spec.VM, Name: "dev"}, state.Holder{
			PID: 1, Host: "ada", Command: "vmctl vm shell vm.dev", Since: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Error(err)
		}
	}}
	h.run("destroy").exits(6).warns(
		"vm.dev stop: take vm.dev down: somebody is at work in it, and it was left as it is",
		"seen: vmctl vm shell vm.dev (pid 1 on ada) since 2026-03-01 11:00:00 UTC", "next: or interrupt them: --allow-interrupt=vm.dev",
	)
	h.acted()
	h.stdin = strings.NewReader("yes\n")
	h.run("destroy", "--allow-interrupt=dev").exits(0)
	h.acted("stop vm.dev", "delete vm.dev")
	if err := leave(); err != nil {
		t.Error(err)
	}
}

// A visitor who entered before the VM was renamed is still inside under the new name. The
// apply sees that at the latest before it touches the VM.
func TestBusySinceBeforeItWasRenamed(t *testing.T) {
	h := inhabited(t)
	f := busy.Folder{Dir: filepath.Join(h.data(), "busy")}
	enter := func() (leave func() error) {
		t.Helper()
		leave, err := f.Enter(t.Context(), spec.Address{Kind: spec.VM, Name: "dev"}, state.Holder{
			PID: 1, Host: "ada", Command: "vmctl vm shell vm.dev", Since: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	leave := enter()
	h.replace(`vm "dev"`, `vm "main"`)
	h.replace("vm.dev.", "vm.main.")
	h.write("moved.vmctl.hcl", "moved {\n  from = vm.dev\n  to   = vm.main\n}\n")
	h.run("apply", "--auto-approve").exits(0)
	h.memory.acted = nil
	h.run("vm", "stop", "main").exits(6).says("blocked vm.main: it is busy: vmctl vm shell vm.dev (pid 1 on ada)")
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	h.tty = true
	h.stdin = &asked{Reader: strings.NewReader("yes\n"), first: func() { leave = enter() }}
	h.run("destroy").exits(6).warns("take vm.main down: somebody is at work in it", "seen: vmctl vm shell vm.dev (pid 1 on ada)")
	h.acted()
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	h.run("vm", "stop", "main").exits(0)
	h.acted("stop vm.main")
	h.run("vm", "start", "main").exits(0)
}

// A saved plan interrupts the visitors that its own flags allow.
func TestKeptPlanKeepsWhomItMayInterrupt(t *testing.T) {
	h := inhabited(t)
	h.memory.acted = nil
	other := h.meanwhile()
	h.stdin = &asked{Reader: strings.NewReader(""), first: func() {
		other.run("plan", "--destroy", "--out=no").exits(6)
		other.run("plan", "--destroy", "--allow-interrupt=dev", "--out=p").exits(0).says("interrupted, as --allow-interrupt says")
		other.run("apply", "p").exits(0)
	}}
	h.run("vm", "exec", "dev", "--", "cat").exits(0)
	h.acted("stop vm.dev", "delete vm.dev")
}

// In a folder that cannot be written vm exec fails, and runs nothing unseen.
func TestExecInAReadOnlyFolder(t *testing.T) {
	h := inhabited(t)
	if err := os.WriteFile(filepath.Join(h.data(), "busy"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.run("vm", "exec", "dev", "--", "true").exits(255).warns("make the folder of busy VMs: mkdir ", "not a directory").silent("true\n")
}
