//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

const (
	created  = "define done, start done, wait_ssh done"
	restarts = "stop graceful, redefine done, start done, wait_ssh done"
)

// row A37
func TestLife(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "life").vm("dev")
	v.must(created, providers.Create)
	if diff := v.differences(); diff != "" {
		t.Errorf("a second plan would find:\n%s", diff)
	}
	if got := v.run("sh", "-c", "echo $((6 * 7)) '$HOME'"); got != "42 $HOME" {
		t.Errorf("the guest says %q", got)
	}
	if len(v.processes()) != 1 {
		t.Errorf("processes that carry the data directory: %v", v.processes())
	}
	first := v.sshPort()

	v.want["memory"] = cty.NumberIntVal(384 << 20)
	v.must(restarts, providers.RestartIt, "memory")
	if diff := v.differences(); diff != "" {
		t.Errorf("a second plan would find:\n%s", diff)
	}
	if got := v.run("awk", "/MemTotal/ { print ($2 > 300000) }", "/proc/meminfo"); got != "1" {
		t.Error("the guest did not get its memory")
	}
	if got := v.sshPort(); got != first {
		t.Errorf("the SSH port was %d and is %d", first, got)
	}

	v.want["running"] = cty.False
	v.must("stop graceful", providers.Stop)
	if o := v.object(); o.State != providers.StateOff || !o.Attrs.GetAttr("ssh_port").IsNull() {
		t.Errorf("it is %s, and its SSH port is %#v", o.State, o.Attrs.GetAttr("ssh_port"))
	}
	v.must("delete done", providers.Destroy)
	v.nothing()
}

func TestSideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "side")
	a, b := h.vm("a"), h.vm("b")
	var both sync.WaitGroup
	for _, v := range []*vm{a, b} {
		c := v.change(providers.Create)
		both.Go(func() {
			if got := v.carryOut(c); got != created {
				t.Errorf("%s: %s", v.name, got)
			}
		})
	}
	both.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if a.sshPort() == b.sshPort() {
		t.Error("two guests share a port")
	}
	if a.run("cat", "/vmctl/authorized_keys") == b.run("cat", "/vmctl/authorized_keys") {
		t.Error("two guests share a key")
	}
	a.must("stop graceful, delete done", providers.Destroy)
	if b.object() == nil || b.run("true") != "" {
		t.Error("the other guest went too")
	}
	b.must("stop graceful, delete done", providers.Destroy)
	h.nothing()
}

// What is done behind vmctl's back is seen, with evidence, and repaired.
func TestBehindItsBack(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "back").vm("dev")
	v.must(created, providers.Create)

	v.virsh("setmaxmem", v.name, "512MiB", "--config")
	if diff := v.differences(); !strings.HasPrefix(diff, "memory: ") {
		t.Errorf("a change of the configuration: %q", diff)
	}
	v.must(restarts, providers.RestartIt, "memory")
	if diff := v.differences(); diff != "" {
		t.Errorf("after it was repaired:\n%s", diff)
	}

	if err := syscall.Kill(v.processes()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	v.await("libvirt says that a killed VM is off", func() bool { return v.object().State == providers.StateOff }) // it learns of it from a closed socket
	if got := evidence(v.object(), providers.FindCrashed); got != "it is shut off (crashed)" {
		t.Errorf("evidence of a killed QEMU: %q", got)
	}
	v.must("start done, wait_ssh done", providers.Start)

	v.virsh("suspend", v.name)
	if o := v.object(); o.State != providers.StatePaused || *o.Running {
		t.Errorf("a suspended guest is %s", o.State)
	}
	v.must("start done, wait_ssh done", providers.Start)

	v.virsh("undefine", v.name)
	if got := evidence(v.object(), providers.FindPartial); got == "" {
		t.Error("that it was undefined is not seen")
	}
	c := v.change(providers.Forget)
	c.Want = cty.NilVal
	if got := v.carryOut(c); got != "unmark done" || v.object().Owner != nil { // libvirt keeps showing the definition that it had
		t.Errorf("letting go of it: %s, and it bears the mark %+v", got, v.object().Owner)
	}
	v.must(restarts, providers.RestartIt, "memory")
	if o := v.object(); len(o.Findings) > 0 {
		t.Errorf("after it was repaired: %+v", o.Findings)
	}

	c = v.change(providers.Stop)
	v.virsh("destroy", v.name)
	if got := v.carryOut(c); got != "stop already" {
		t.Errorf("stop of what was forced off meanwhile: %s", got)
	}
	c = v.change(providers.Start)
	v.virsh("setvcpus", v.name, "2", "--config", "--maximum")
	if got := v.carryOut(c); got != "start stale stale_plan" {
		t.Errorf("start of what was changed meanwhile: %s", got)
	}
	v.must("delete done", providers.Destroy)
	v.nothing()
}

func evidence(o *providers.Object, kind providers.FindingKind) string {
	for _, f := range o.Findings {
		if f.Kind == kind {
			return f.Evidence[0]
		}
	}
	return ""
}

func TestHostPortThatIsTaken(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "port").vm("dev")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	v.want["port_forward"] = forwards(port)
	v.must("define done, start failed port_taken", providers.Create)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	v.must("start done, wait_ssh done", providers.Start)
	if got := v.object().Attrs.GetAttr("ports").AsValueMap()["8080"]; got.AsBigFloat().String() != port {
		t.Errorf("port %#v, want %s", got, port)
	}
	v.must("stop graceful, delete done", providers.Destroy)
	v.nothing()
}

// row A46
func TestGuestThatNeverAnswers(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "mute").vm("dev")
	v.cmdline("rdinit=/nowhere")
	v.policy["ssh"] = cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(30)})
	v.policy["stop"] = cty.ObjectVal(map[string]cty.Value{"grace": cty.NumberIntVal(1), "force": cty.True, "force_wait": cty.NumberIntVal(20)})
	v.must("define done, start done, wait_ssh timeout no_ssh", providers.Create)
	log, err := os.ReadFile(filepath.Join(v.settings.Dir, "pool", string(v.id)+".console.log"))
	if err != nil || !strings.Contains(string(log), "anic") {
		t.Errorf("the boot log: %v\n%s", err, log)
	}
	v.must("stop forced, delete done", providers.Destroy)
	v.nothing()
}

// row A47
func TestGuestWithAnotherHostKey(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "hostkey").vm("dev")
	v.must(created, providers.Create)
	stranger, err := sshx.EnsureKey(filepath.Join(t.TempDir(), "stranger"), "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dev.xml")
	text := strings.Replace(v.virsh("dumpxml", "--inactive", v.name), v.object().Owner.HostKey, stranger, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v.virsh("define", file)
	v.must("stop graceful, start done, wait_ssh refused host_key_changed", providers.RestartIt)
	v.must("stop graceful, delete done", providers.Destroy)
	// The pin is renewed when vmctl makes it again.
	v.must(created, providers.Create)
	v.must("stop graceful, delete done", providers.Destroy)
	v.nothing()
}

// Another pool in the provider's block is where new files go; earlier ones are
// found where they are.
func TestPoolThatChanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t, "pool")
	v := h.vm("dev")
	v.want["running"] = cty.False
	v.must("define done", providers.Create)
	other := filepath.Join(h.dir, "images")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	v.virsh("pool-create-as", "pool-images", "dir", "--target", other)
	h.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///session"), "pool": cty.StringVal("pool-images")})
	p, err := libvirt.Type(libvirt.Host{UID: os.Getuid(), Getenv: os.Getenv}).Open(t.Context(), h.settings)
	if err != nil {
		t.Fatal(err)
	}
	earlier := h.provider
	h.provider = p
	v.want["memory"] = cty.NumberIntVal(320 << 20)
	c := v.change(providers.Update, "memory")
	c.Generation = 2
	if got := v.carryOut(c); got != "redefine done" {
		t.Fatalf("in another pool: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(h.settings.Dir, "pool", "*.kernel-*")); err != nil || len(left) > 0 {
		t.Errorf("left in the earlier pool: %v (%v)", left, err)
	}
	if moved, err := filepath.Glob(filepath.Join(other, string(v.id)+".kernel-*")); err != nil || len(moved) != 1 {
		t.Errorf("in the other pool: %v (%v)", moved, err)
	}
	h.provider = earlier // whose block names no pool
	v.must("delete done", providers.Destroy)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	v.virsh("pool-destroy", "pool-images")
	v.nothing()
}

// QEMU ends at once: that is said within seconds, with what it said and where.
//
// row L44
func TestQEMUThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "ends").vm("dev")
	v.want["running"] = cty.False
	v.must("define done", providers.Create)
	v.define(strings.Replace(v.virsh("dumpxml", "--inactive", v.name),
		"<qemu:commandline>", "<qemu:commandline><qemu:arg value='-nonsense'/>", 1))
	c := v.change(providers.Start)
	steps, err := v.provider.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.provider.Do(t.Context(), providers.Work{
		Step: steps[0], Expect: c.Object.Fingerprint, Want: c.Want, Policy: c.Policy, Generation: c.Generation,
	}, func(providers.Progress) {})
	var f *providers.Problem
	if !errors.As(err, &f) || f.Code != "start_failed" {
		t.Fatalf("start: %v", err)
	}
	log := filepath.Join(os.Getenv(homeVar), ".cache/libvirt/qemu/log", v.name+".log")
	if !slices.Contains(providertest.Lines(f.Next), "see QEMU's log: "+log) {
		t.Errorf("it says to type next: %q", f.Next)
	}
	if seen := strings.Join(f.Seen, "\n"); !strings.Contains(seen, log) || !strings.Contains(seen, "-nonsense: invalid option") {
		t.Errorf("it says that it saw:\n%s", seen)
	}
	v.must("delete done", providers.Destroy)
	v.nothing()
}

// row L49
// row A57
func TestNameOfAStranger(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "name").vm("dev")
	stranger := filepath.Join(os.Getenv(homeVar), "stranger.xml")
	xml := "<domain type='qemu'><name>name.dev</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>"
	if err := os.WriteFile(stranger, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	v.virsh("define", stranger)
	inv, err := v.provider.Observe(t.Context(), providers.Query{Known: []providers.Known{{Address: v.address, Kind: spec.VM, Name: v.name}}})
	seen := slices.DeleteFunc(inv.Objects, func(o providers.Object) bool { return o.Name != v.name }) // other tests have theirs
	if err != nil || len(seen) != 1 || seen[0].Owner != nil {
		t.Errorf("the stranger is seen as %+v (%v)", seen, err)
	}
	v.must("define refused name_taken", providers.Create)
	v.virsh("undefine", v.name)
	v.nothing()
}
