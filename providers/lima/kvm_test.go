//go:build unix

package lima_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/real"
	"vmctl/internal/yamltext"
	"vmctl/providers"
)

// newKVM makes a lab whose instance is off and uses KVM if that works; what becomes of it there is a parameter.
func newKVM(t *testing.T, guest string) *lab {
	t.Helper()
	return newHouse(t).kvmLab(guest)
}

func (h *house) kvmLab(guest string) *lab {
	t := h.t
	t.Helper()
	h.kvm = filepath.Join(h.data, "kvm")
	if err := os.WriteFile(h.kvm, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return h.lab(set("running", cty.False), set("accel", cty.StringVal("auto")), set("params", cty.MapVal(map[string]cty.Value{"kvm": cty.StringVal(guest)})))
}

// cpu returns the CPU of the instance, which only an emulated one has in its definition.
func (l *lab) cpu() any {
	l.t.Helper()
	doc, err := yamltext.Parse(l.read("lab.dev", "lima.yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	return doc["vmOpts"]
}

// startOnKVM starts the instance, and returns what it said of KVM.
func (l *lab) startOnKVM() []string {
	l.t.Helper()
	var all []string
	c := l.change(dev, providers.Start, l.object(devID))
	if err := l.start(l.t.Context(), c, func(p providers.Progress) {
		if strings.Contains(p.Text, "KVM") {
			all = append(all, p.Text)
		}
	}); err != nil {
		l.t.Fatal(err)
	}
	return all
}

// Where KVM does not work, the start goes on with an emulated CPU, and says why. Until the machine is started anew,
// nothing tries it again.
func TestKVMFails(t *testing.T) {
	for guest, why := range map[string]string{"refuses": "(Could not access KVM kernel module: Permission denied)", "aborts": "(qemu-system-x86_64: error: failed to set MSR 0x10a to 0x69)", "breaks": "internal-error"} {
		t.Run(guest, func(t *testing.T) {
			t.Parallel()
			l := newKVM(t, guest)
			if got := l.cpu(); got != nil {
				t.Fatalf("it has the options %v before KVM failed", got)
			}
			if said := l.startOnKVM(); len(said) != 1 || !strings.Contains(said[0], why) || !strings.HasSuffix(said[0], "starting again with TCG") {
				t.Errorf("it said %q", said)
			}
			if o := l.object(devID); o.State != providers.StateRunning || l.cpu() == nil {
				t.Errorf("afterwards it is %s (%s), with the options %v", o.State, findings(o), l.cpu())
			}
			if n := len(l.processesOf("lab.dev")); n != 2 { // QEMU is in a process group of its own
				t.Errorf("%d processes run it", n)
			}
			l.do(dev, providers.Stop)
			if said := l.startOnKVM(); len(said) > 0 {
				t.Errorf("the second start said %q", said)
			}
			l.do(dev, providers.Stop)
			l.write(strings.ReplaceAll(l.read("_config", ".vmctl-kvm.json"), `"boot": "`, `"boot": "another `), "_config", ".vmctl-kvm.json")
			if said := l.startOnKVM(); len(said) != 1 {
				t.Errorf("after the machine was started anew, it said %q", said)
			}
		})
	}
}

// A VM that was made before it was found out that KVM does not work starts without it, too: it gets an emulated CPU, since
// Lima would take the machine's own.
func TestKVMFailedForAnother(t *testing.T) {
	l := newKVM(t, "refuses")
	if err := l.carryOut(l.ofTwo(providers.Create)); err != nil {
		t.Fatal(err)
	}
	if said := l.startOnKVM(); len(said) != 1 {
		t.Fatalf("the first one said %q", said)
	}
	l.do(dev, providers.Stop)
	if err := l.start(t.Context(), l.ofTwo(providers.Start), quiet); err != nil {
		var p *providers.Problem
		_ = errors.As(err, &p)
		t.Errorf("the second one: %v, %q", err, p.Seen)
	}
}

// A failed start shows first what QEMU has said, and not only that its host agent ended. A warning of QEMU that names KVM
// is no sign that it does not work, and neither is a path or an instance with that name.
func TestFailedStartQuotesQEMU(t *testing.T) {
	h := newHouse(t)
	h.home = filepath.Join(h.data, "on-kvm")
	l := h.kvmLab("refuses")
	l.vm = want(set("running", cty.False), set("accel", cty.StringVal("auto")), set("additional_disk", l.vm.GetAttr("additional_disk")), set("params", cty.MapVal(map[string]cty.Value{"qemu": cty.StringVal("fails")})))
	l.edit("params")
	err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet)
	p := (*providers.Problem)(nil)
	if !errors.As(err, &p) || !strings.Contains(strings.Join(p.Seen, "\n"), "qemu[stderr]: Could not set up host forwarding rule") {
		t.Errorf("it failed with %v: %+v", err, p)
	}
	if _, err := os.Stat(filepath.Join(l.home, "_config", ".vmctl-kvm.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("KVM is noted as failed: %v", err)
	}
}

// Where KVM works, the guest uses it. A start that fails of something else is not tried again.
func TestKVMWorks(t *testing.T) {
	real.Long(t)
	l := newKVM(t, "works")
	if said := l.startOnKVM(); len(said) > 0 || l.cpu() != nil {
		t.Errorf("it said %q, and has the options %v", said, l.cpu())
	}
	l.do(dev, providers.Stop)
	l.vm = want(set("accel", cty.StringVal("auto")), set("params", cty.MapVal(map[string]cty.Value{"dies": cty.StringVal("yes")})), set("additional_disk", l.vm.GetAttr("additional_disk")))
	l.edit("params")
	err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet)
	if p := (*providers.Problem)(nil); !errors.As(err, &p) || p.Code != "not_started" {
		t.Errorf("started: %v", err)
	}
	if _, err := os.Stat(filepath.Join(l.home, "_config", ".vmctl-kvm.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("KVM is noted as failed: %v", err)
	}
}

// A device that cannot be opened is not tried.
func TestKVMCannotBeOpened(t *testing.T) {
	h := newHouse(t)
	h.kvm = filepath.Join(h.data, "none")
	l := h.lab(set("running", cty.False), set("accel", cty.StringVal("auto")), set("params", cty.MapVal(map[string]cty.Value{"kvm": cty.StringVal("breaks")})))
	if said := l.startOnKVM(); len(said) > 0 || l.cpu() == nil {
		t.Errorf("it said %q, and has the options %v", said, l.cpu())
	}
}
