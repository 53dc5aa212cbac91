//go:build unix

package lima_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/providers"
)

// hostAgent starts a process with the arguments of the host agent of an instance. end ends it.
func (h *house) hostAgent(name string) (end func()) {
	h.t.Helper()
	agent := exec.Command("sh", "-c", "read line", "hostagent", "--pidfile", filepath.Join(h.home, name, "ha.pid"))
	in, err := agent.StdinPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return func() {
		_ = in.Close()   //nolint:errcheck // the process ends either way
		_ = agent.Wait() //nolint:errcheck // its line was empty
	}
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
		{"vz", "", `runs, and its vmType is "vz"`}, {"wsl2", "", `runs, and its vmType is "wsl2"`},
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
