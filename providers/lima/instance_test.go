//go:build unix

package lima_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vmctl/providers"
	"vmctl/providers/lima"
)

// hostAgent starts a process with the arguments of the host agent of an instance. end ends it.
func (h *house) hostAgent(name string) (end func()) {
	h.t.Helper()
	agent, release := h.heldAgent(name)
	return func() {
		release()
		_ = agent.Wait() //nolint:errcheck // its line was empty
	}
}

// heldAgent starts a process with the arguments of the host agent of an instance. It ends after release.
func (h *house) heldAgent(name string) (agent *exec.Cmd, release func()) {
	h.t.Helper()
	program, err := standIn()
	if err != nil {
		h.t.Fatal(err)
	}
	agent = exec.Command(program, "held", "hostagent", "--pidfile", filepath.Join(h.home, name, "ha.pid"))
	in, err := agent.StdinPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return agent, func() { _ = in.Close() } //nolint:errcheck // the process ends either way
}

// An instance that another driver than QEMU runs has no process of its own beside its host agent: nobody can
// tell how it is.
func TestOtherDriver(t *testing.T) {
	h := newHouse(t)
	p, err := h.limaType().Open(t.Context(), h.settings())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ vmType, on, says string }{
		{"vz", "", `runs, and its vmType is "vz"`},
		{"wsl2", "", `runs, and its vmType is "wsl2"`},
		{"qemu", providers.StateBroken, "runs, and QEMU does not"},
	} {
		h.write(theirs+"vmType: "+test.vmType+"\n", "box", "lima.yaml")
		h.write("", "box", "disk")
		look := func() providers.Object {
			inv, err := p.Observe(t.Context(), providers.Query{})
			if err != nil || len(inv.Objects) != 1 {
				t.Fatalf("%s: objects %v, %v", test.vmType, inv.Objects, err)
			}
			return inv.Objects[0]
		}
		if o := look(); o.State != providers.StateOff {
			t.Errorf("%s: without a process it is %q", test.vmType, o.State)
		}
		end := h.hostAgent("box")
		o := look()
		said := o.Unreadable["running"] + findings(&o)
		if o.State != test.on || !strings.Contains(said, test.says) {
			t.Errorf("%s: with a host agent it is %q: %s", test.vmType, o.State, said)
		}
		end()
	}
}

// Where other users' processes are hidden, an instance is not off while a pid file of it names a process
// that cannot be identified.
func TestHiddenProcesses(t *testing.T) {
	h := newHouse(t)
	p, err := h.limaType().Open(t.Context(), h.settings())
	if err != nil {
		t.Fatal(err)
	}
	// A command that has not become its final program cannot be identified either.
	other := exec.Command("sh", "-c", "read line")
	other.Args[0] = "env"
	in, err := other.StdinPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(other.Process.Pid)
	h.write(theirs, "box", "lima.yaml")
	h.write("", "box", "disk")
	once, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for the final program
	look := func(file, want, says string) {
		t.Helper()
		state, reason, err := lima.StateBesideHidden(once, p, "box")
		if err != nil || state != want || !strings.Contains(reason, says) {
			t.Errorf("%s: it is %q (%s, %v), want %q", file, state, reason, err, want)
		}
	}
	look("no pid file", providers.StateOff, "")
	for _, file := range []string{"ha.pid", "qemu.pid"} {
		h.write("-1", "box", file)
		look(file+" with garbage", providers.StateOff, "")
		h.write(pid+"\n", "box", file)
		look(file, "", file+": identify pid "+pid)
		h.write("-1", "box", file)
	}
	h.write(pid, "box", "ha.pid")
	_ = in.Close()   //nolint:errcheck // the process ends either way
	_ = other.Wait() //nolint:errcheck // its line was empty
	look("ha.pid of a process that has ended", providers.StateOff, "")
}
