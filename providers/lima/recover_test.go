//go:build unix

package lima_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/internal/real"
	"vmctl/internal/sshx"
	"vmctl/providers"
	"vmctl/providers/providertest"
	"vmctl/spec"
)

var (
	dev   = spec.Address{Kind: spec.VM, Name: "dev"}
	cache = spec.Address{Kind: spec.Disk, Name: "cache"}
)

const (
	devID   = providers.ID("3f2504e0-4f89-81d3-9a0c-0305e82c3301")
	cacheID = providers.ID("3f2504e0-4f89-81d3-9a0c-0305e82c3302")
)

// lab is a house with one provider, an instance and its disk.
type lab struct {
	*house
	p       providers.Provider
	vm      cty.Value
	policy  cty.Value
	results []providers.Result
}

func newLab(t *testing.T, edits ...func(map[string]cty.Value)) *lab {
	t.Helper()
	return newHouse(t).lab(edits...)
}

func (h *house) lab(edits ...func(map[string]cty.Value)) *lab {
	t := h.t
	t.Helper()
	p, err := h.limaType().Open(t.Context(), h.settings())
	if err != nil {
		t.Fatal(err)
	}
	disks := set("additional_disk", cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"disk": cty.StringVal(cache.String()), "mount_point": cty.NullVal(cty.String),
	})}))
	l := &lab{house: h, p: p, vm: want(append([]func(map[string]cty.Value){disks}, edits...)...), policy: providertest.Waits(time.Minute)}
	l.do(cache, providers.Create)
	l.do(dev, providers.Create)
	return l
}

func (l *lab) observe() providers.Inventory {
	l.t.Helper()
	inv, err := l.p.Observe(l.t.Context(), providers.Query{Known: []providers.Known{
		{Address: dev, Kind: spec.VM, ID: devID, Name: "lab.dev"}, {Address: cache, Kind: spec.Disk, ID: cacheID, Name: "lab.cache"},
	}})
	if err != nil {
		l.t.Fatal(err)
	}
	return inv
}

func (l *lab) object(id providers.ID) *providers.Object {
	l.t.Helper()
	for _, o := range l.observe().Objects {
		if o.ID == id {
			return &o
		}
	}
	return nil
}

// change returns a change of an object; nil: there is none.
func (l *lab) change(a spec.Address, action providers.Action, o *providers.Object) providers.Change {
	id, vm := devID, l.vm
	if a == cache {
		id, vm = cacheID, providertest.Disk()
	}
	return providers.Change{
		Address: a, Kind: a.Kind, Action: action, Name: "lab." + a.Name, ID: id, Object: o, Prior: vm, Want: vm, Policy: l.policy, Generation: 1,
		Uses: map[spec.Address]providers.Used{cache: {Kind: spec.Disk, ID: cacheID, Name: "lab.cache"}},
	}
}

// try carries out an action, and returns the first failure.
func (l *lab) try(a spec.Address, action providers.Action) error {
	l.t.Helper()
	id := devID
	if a == cache {
		id = cacheID
	}
	return l.carryOut(l.change(a, action, l.object(id)))
}

// edit carries out an edit of an attribute of the instance.
func (l *lab) edit(path string) {
	l.t.Helper()
	c := l.change(dev, providers.Update, l.object(devID))
	c.Edits = []providers.Edit{{Path: path}}
	if err := l.carryOut(c); err != nil {
		l.t.Fatal(err)
	}
}

// carryOut carries out a change, and returns the first failure.
func (l *lab) carryOut(c providers.Change) error {
	l.t.Helper()
	steps, err := l.p.Steps(c)
	if err != nil {
		return err
	}
	expect := ""
	if c.Object != nil {
		expect = c.Object.Fingerprint
	}
	l.results = nil
	for _, s := range steps {
		w := providers.Work{Step: s, Expect: expect, Prior: c.Prior, Want: c.Want, Policy: l.policy, Generation: 1, Uses: c.Uses}
		if c.Action == providers.Create {
			w.Prior = cty.NilVal
		}
		r, err := l.perform(w)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Op, err)
		}
		expect = r.Fingerprint
		l.results = append(l.results, r)
	}
	return nil
}

// perform does one step. Its time only separates a hang from slowness: the clock of a lab leaps over waits.
func (l *lab) perform(w providers.Work) (providers.Result, error) {
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Minute)
	defer cancel()
	return l.p.Do(ctx, w, func(providers.Progress) {})
}

func (l *lab) do(a spec.Address, action providers.Action) {
	l.t.Helper()
	if err := l.try(a, action); err != nil {
		l.t.Fatalf("%s %s: %v", action, a, err)
	}
}

func (l *lab) inDev(file string) string { return filepath.Join(l.home, "lab.dev", file) }

// kill ends the process of a pid file at once, and returns when it is gone.
func (l *lab) kill(pidFile string) {
	l.t.Helper()
	id, err := (process.Host{}).Capture(l.t.Context(), l.pid(pidFile))
	if err != nil {
		l.t.Fatal(err)
	}
	if err := syscall.Kill(id.PID, syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	if err := (process.Host{}).Wait(l.t.Context(), id); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) pid(file string) int {
	l.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(l.read("lab.dev", file)))
	if err != nil {
		l.t.Fatal(err)
	}
	return pid
}

// sleeper starts a process that has nothing to do with Lima.
func (l *lab) sleeper() *exec.Cmd {
	l.t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := errors.Join(cmd.Process.Kill(), ignoreExit(cmd.Wait())); err != nil {
			l.t.Error(err)
		}
	})
	return cmd
}

func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}

// findings returns the kinds of findings of an object with their evidence.
func findings(o *providers.Object) string {
	var all []string
	for _, f := range o.Findings {
		all = append(all, string(f.Kind)+": "+strings.Join(f.Evidence, "; "))
	}
	return strings.Join(all, "\n")
}

// Whatever happened to its processes, an instance is seen as it is, and runs again after one change: by
// a request where anybody can hear one, by force where nobody can.
//
// Trap 1: Lima v2.2.0 calls an instance whose host agent was killed Broken. instance.StartWithPaths asks for ha.pid
// alone, which an inspection has removed by then: it starts a second host agent, whose QEMU does not get the disk. In the
// end that agent removes qemu.pid (killQEMU of the driver), and Lima says Stopped while the first QEMU runs on.
//
// Trap 5: it signals whatever process has the pid in ha.pid.
//
// Trap 8: it calls an instance Running as soon as both pids live, also while the guest is in internal-error.
//
// Trap 10: store.Inspect removes the pid files of processes that are gone (ReadPIDFile): who looks changes what was
// left.
//
// row L01, of Lima's VMs
// row L02, of Lima's VMs
// row L05, of Lima's VMs
// row L14, of Lima's VMs
// row L15, of Lima's VMs
// row L34, of Lima's VMs
func TestRecovery(t *testing.T) {
	deaf := set("params", cty.MapVal(map[string]cty.Value{"deaf": cty.StringVal("yes")}))
	for _, test := range []struct {
		name   string
		edits  []func(map[string]cty.Value)
		harm   func(l *lab)
		state  string
		says   []string // in the findings of the instance
		disk   string   // in the findings of its disk
		action providers.Action
		how    providers.How // of the first step
		anew   bool          // another QEMU runs afterwards
		forced bool          // the policy gives no grace
	}{
		{name: "nothing", harm: func(*lab) {}, state: "running", action: providers.NoOp},
		{
			name: "the host agent was killed", harm: func(l *lab) { l.kill("ha.pid") }, state: "broken",
			says: []string{"broken: QEMU (pid ", ") runs without a host agent"}, action: providers.Recover, how: providers.Graceful, anew: true,
		},
		{
			name: "the host agent was killed, and the guest ignores requests", edits: []func(map[string]cty.Value){deaf}, forced: true,
			harm: func(l *lab) { l.kill("ha.pid") }, state: "broken", says: []string{"runs without a host agent"}, action: providers.Recover, how: providers.Forced, anew: true,
		},
		{
			name: "both were killed", harm: func(l *lab) { l.kill("ha.pid"); l.kill("qemu.pid") }, state: "off",
			says: []string{"leftover: its processes are gone, and left ", "ha.pid (pid ", "the lock of the disk lab.cache"},
			disk: "stale_lock: ", action: providers.Start, anew: true,
		},
		{
			name: "both were killed, and somebody else has the pid", state: "off", action: providers.Start, anew: true,
			harm: func(l *lab) {
				l.kill("ha.pid")
				l.kill("qemu.pid")
				l.write(strconv.Itoa(l.sleeper().Process.Pid)+"\n", "lab.dev", "ha.pid")
			},
			says: []string{"is sleep by now, which is no process of it"}, disk: "stale_lock: ",
		},
		{
			name: "the pid files are garbage", state: "off", action: providers.Start, anew: true, disk: "stale_lock: ",
			harm: func(l *lab) {
				l.kill("ha.pid")
				l.kill("qemu.pid")
				l.write("-1", "lab.dev", "ha.pid")
				l.write("much", "lab.dev", "qemu.pid")
			},
			says: []string{"it names no process"},
		},
		{
			name: "its pid files were removed while it runs", state: "running", action: providers.NoOp,
			harm: func(l *lab) {
				if err := errors.Join(os.Remove(l.inDev("ha.pid")), os.Remove(l.inDev("qemu.pid"))); err != nil {
					l.t.Fatal(err)
				}
			},
		},
		{
			name: "the guest crashed", harm: func(l *lab) { l.write("internal-error", "lab.dev", "guest.state") }, state: "broken",
			says: []string{"broken: QEMU (pid ", "its guest does not: it is in the state internal-error"}, action: providers.Recover, how: providers.Graceful, anew: true,
		},
		{name: "the guest is paused", harm: func(l *lab) { l.write("paused", "lab.dev", "guest.state") }, state: "paused", action: providers.Stop, how: providers.Graceful},
		{
			name: "a second QEMU runs it", state: "broken", says: []string{"broken: several processes run it"}, action: providers.Recover, how: providers.Forced, anew: true,
			forced: true, // both have one socket: only one of them can be asked
			harm: func(l *lab) {
				program, err := standIn()
				if err != nil {
					l.t.Fatal(err)
				}
				second := exec.Command(qemuBeside(program), "qemu", "-pidfile", l.inDev("qemu.pid"))
				out, err := second.StdoutPipe()
				if err == nil {
					err = second.Start()
				}
				if err == nil {
					_, err = out.Read(make([]byte, 1)) // it listens
				}
				if err != nil {
					l.t.Fatal(err)
				}
				l.t.Cleanup(func() { _ = second.Wait() }) //nolint:errcheck // it was ended
				go func() { _ = second.Wait() }()         //nolint:errcheck // so that it is no zombie
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, test.edits...)
			if test.forced {
				l.policy = providertest.Waits(time.Millisecond)
			}
			before, agentBefore := l.pid("qemu.pid"), l.pid("ha.pid")
			test.harm(l)
			traces := strings.Join(l.traces(), "\n")
			o := l.object(devID)
			if now := strings.Join(l.traces(), "\n"); now != traces {
				t.Error("the look has left traces")
			}
			if o == nil || o.State != test.state {
				t.Fatalf("it is seen as %+v, and was to be %s", o, test.state)
			}
			for _, words := range test.says {
				if !strings.Contains(findings(o), words) {
					t.Errorf("its findings lack %q:\n%s", words, findings(o))
				}
			}
			if disk := findings(l.object(cacheID)); test.disk == "" && disk != "" || !strings.Contains(disk, test.disk) {
				t.Errorf("the findings of its disk are %q", disk)
			}
			if test.action == providers.NoOp {
				return
			}
			l.do(dev, test.action)
			if test.how != "" && l.results[0].How != test.how {
				t.Errorf("it ended by %s %v, and was to end by %s", l.results[0].How, l.results[0].Evidence, test.how)
			}
			o = l.object(devID)
			if !test.anew {
				return
			}
			if _, err := os.Stat(l.inDev("ha.stderr.log.1")); err != nil {
				t.Errorf("the log of the run before: %v", err)
			}
			if o.State != providers.StateRunning || len(o.Findings) > 0 || l.pid("qemu.pid") == before || l.pid("ha.pid") == agentBefore {
				t.Errorf("afterwards it is %s, with %q", o.State, findings(o))
			}
			if disk := findings(l.object(cacheID)); disk != "" {
				t.Errorf("afterwards the findings of its disk are %q", disk)
			}
		})
	}
}

// A host agent of another version is said, and works on.
func TestOutdated(t *testing.T) {
	l := newLab(t)
	if got := findings(l.object(devID)); got != "" {
		t.Fatalf("of the version that started it: %s", got)
	}
	text := l.read("lab.dev", "vmctl.run.json")
	version := regexp.MustCompile(`"lima": "[^"]*"`)
	if !version.MatchString(text) {
		t.Fatalf("the run has no version: %s", text)
	}
	l.write(version.ReplaceAllString(text, `"lima": "1.0.0"`), "lab.dev", "vmctl.run.json")
	o := l.object(devID)
	if got := findings(o); o.State != providers.StateRunning || !strings.HasPrefix(got, "outdated: its host agent is of Lima 1.0.0, and vmctl has Lima ") {
		t.Errorf("it is %s, %s", o.State, got)
	}
}

// A home that overrides what a spec sets has a problem that names both ways out; one that overrides other
// things has none.
func TestOverride(t *testing.T) {
	l := newLab(t)
	for text, want := range map[string]string{"": "", "# nothing\n": "", "env: {A: b}\n": "", "memory: 1GiB\ncpus: 8\n": "sets cpus, memory for all instances", "{": "it is not YAML"} {
		l.write(text, "_config", "override.yaml")
		got := ""
		if missing := l.observe().Missing[spec.VM]; missing != nil {
			got = missing.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A host agent that dies at once fails the start within moments, names its log, and leaves nothing behind
// but its logs.
//
// row L44
func TestDiesAtStart(t *testing.T) {
	dies := set("params", cty.MapVal(map[string]cty.Value{"dies": cty.StringVal("yes")}))
	l := newLab(t, set("running", cty.False), dies)
	l.vm = want(dies, set("additional_disk", l.vm.GetAttr("additional_disk")))
	err := l.try(dev, providers.Start)
	var p *providers.Problem
	if !errors.As(err, &p) || p.Code != "not_started" {
		t.Fatalf("started: %v", err)
	}
	if said := strings.Join(p.Seen, "\n"); !strings.Contains(said, "no such accelerator") {
		t.Errorf("it says %q", said)
	}
	if !strings.Contains(p.Next[0].Text, l.inDev("ha.stderr.log")) {
		t.Errorf("its advice is %+v", p.Next)
	}
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 {
		t.Errorf("afterwards it is %s, %s", o.State, findings(o))
	}
}

// A start that comes second touches nothing of the first one, which somebody else made.
func TestStartRace(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	l.write("", "race")
	if err := l.try(dev, providers.Start); err == nil || !strings.Contains(err.Error(), "a hostagent runs") {
		t.Fatalf("started: %v", err)
	}
	if o := l.object(devID); o.State != providers.StateRunning || len(o.Findings) > 0 {
		t.Errorf("afterwards it is %s, %s", o.State, findings(o))
	}
	if n := len(l.processesOf("lab.dev")); n != 2 {
		t.Errorf("%d processes run it, and were to be 2", n)
	}
}

// A parameter of the template that the spec overrides comes back when the spec leaves it alone again.
func TestParamComesBack(t *testing.T) {
	const template = "env:\n  A: b\nparam:\n  a: one\n  b: two\n"
	mine := set("params", cty.MapVal(map[string]cty.Value{"a": cty.StringVal("mine")}))
	l := newLab(t, set("running", cty.False), set("template", cty.StringVal(template)), mine)
	if text := l.read("lab.dev", "lima.yaml"); !strings.Contains(text, "a: mine") {
		t.Fatalf("the parameter is not in\n%s", text)
	}
	l.vm = want(set("running", cty.False), set("template", cty.StringVal(template)), set("additional_disk", l.vm.GetAttr("additional_disk")))
	l.edit("params")
	if text := l.read("lab.dev", "lima.yaml"); !strings.Contains(text, "a: one") || !strings.Contains(text, "b: two") {
		t.Errorf("the parameters are not as in the template:\n%s", text)
	}
}

// An instance that lost its mark is marked again as vmctl's own: it keeps its scripts and its host key.
func TestLostMark(t *testing.T) {
	l := newLab(t, set("running", cty.False))
	before := l.read("lab.dev", "lima.yaml")
	if err := os.Remove(l.inDev("vmctl.json")); err != nil {
		t.Fatal(err)
	}
	o := l.object("lima:vm:lab.dev")
	if o == nil {
		t.Fatal("it is not seen")
	}
	c := l.change(dev, providers.Import, o)
	c.ID, c.Mark = o.ID, &providers.MarkEdit{Reason: "it was lost"}
	if err := l.carryOut(c); err != nil {
		t.Fatal(err)
	}
	if after := l.read("lab.dev", "lima.yaml"); after != before {
		t.Errorf("the definition was\n%s\nand is\n%s", before, after)
	}
	if mark := l.read("lab.dev", "vmctl.json"); strings.Contains(mark, `"imported"`) || !strings.Contains(mark, "host_key") {
		t.Errorf("the mark is %s", mark)
	}
}

// What does not end keeps its files, its disks and its run state: it is never taken for off.
//
// row L08
// row L09
// row L54
func TestStillRunning(t *testing.T) {
	l := newLab(t, set("params", cty.MapVal(map[string]cty.Value{"deaf": cty.StringVal("yes")})))
	before := l.object(devID)
	policy := providertest.Waits(50 * time.Millisecond).AsValueMap()
	stop := policy["stop"].AsValueMap()
	stop["force"] = cty.False
	policy["stop"] = cty.ObjectVal(stop)
	l.policy = cty.ObjectVal(policy)
	for _, action := range []providers.Action{providers.Stop, providers.Destroy} {
		if err := l.try(dev, action); err == nil || !strings.Contains(err.Error(), "still running") {
			t.Fatalf("%s: %v", action, err)
		}
		for _, file := range []string{"ha.pid", "qemu.pid", "qmp.sock", "disk", "lima.yaml", "vmctl.json"} {
			if _, err := os.Lstat(l.inDev(file)); err != nil {
				t.Errorf("after a %s that failed: %v", action, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")); err != nil {
			t.Errorf("after a %s that failed its disk is free: %v", action, err)
		}
		if o := l.object(devID); o.Fingerprint != before.Fingerprint {
			t.Errorf("after a %s that failed it is %s", action, o.Fingerprint)
		}
	}
}

// The files that a run left are removed once it is known to be over, and the step names each.
//
// row L31
// row L42
func TestLeftovers(t *testing.T) {
	l := newLab(t)
	l.do(dev, providers.Stop)
	for _, file := range []string{"ha.pid", "ha.sock", "ssh.sock.tmp"} {
		l.write("1234567", "lab.dev", file)
	}
	l.vm = want(set("running", cty.False), set("additional_disk", l.vm.GetAttr("additional_disk")))
	l.do(dev, providers.Update)
	for _, file := range []string{"ha.pid", "ha.sock", "ssh.sock.tmp"} {
		if _, err := os.Lstat(l.inDev(file)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
		if said := strings.Join(l.results[0].Evidence, "\n"); !strings.Contains(said, "removed "+file) {
			t.Errorf("the step says %q", said)
		}
	}
}

// A key pair that is half there is made whole before an instance is: from the private key, if that is
// there. A private key that cannot be read is replaced as long as no instance lets it in.
//
// row L37
// row L38
func TestKeyPair(t *testing.T) {
	key := func(l *lab, file string) string { return filepath.Join(l.home, "_config", file) }
	for _, test := range []struct {
		name string
		harm func(l *lab, private string)
		kept bool // the private key
	}{
		{"no public half", func(l *lab, private string) { l.write(private, "_config", "user") }, true},
		{"another public half", func(l *lab, private string) {
			l.write(private, "_config", "user")
			l.write("ssh-ed25519 AAAA half", "_config", "user.pub")
		}, true},
		{"a public half alone", func(l *lab, _ string) { l.write("ssh-ed25519 AAAA half", "_config", "user.pub") }, false},
		{"a truncated private key", func(l *lab, private string) { l.write(private[:40], "_config", "user") }, false},
		{"what a killed writer left", func(l *lab, private string) { l.write(private[:40], "_config", ".user.123456.tmp") }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			p, err := h.limaType().Open(t.Context(), h.settings())
			if err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(t.TempDir(), "key")
			if _, err := sshx.EnsureKey(other, "x"); err != nil {
				t.Fatal(err)
			}
			private, err := os.ReadFile(other)
			if err != nil {
				t.Fatal(err)
			}
			l := &lab{house: h, p: p, vm: want(), policy: providertest.Waits(time.Minute)}
			test.harm(l, string(private))
			l.do(dev, providers.Create)
			now, err := os.ReadFile(key(l, "user"))
			if err != nil || (string(now) == string(private)) != test.kept {
				t.Errorf("the private key was kept: %t, %v", string(now) == string(private), err)
			}
			public, err := sshx.PublicOf(now)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(key(l, "user.pub")); err != nil || !strings.HasPrefix(string(text), public) {
				t.Errorf("the public half is %q, %v; and was to be %q", text, err, public)
			}
			if err := os.WriteFile(key(l, "user"), now[:40], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := l.try(dev, providers.RestartIt); err == nil || !strings.Contains(err.Error(), "key pair") {
				t.Errorf("with a key that an instance lets in and that is damaged: %v", err)
			}
		})
	}
}

// QEMU that hangs runs, as far as anybody can tell: it is said, and a stop forces it in the end.
func TestSilentQEMU(t *testing.T) {
	real.Long(t)
	l := newLab(t)
	if err := syscall.Kill(l.pid("qemu.pid"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	o := l.object(devID)
	if o.State != providers.StateRunning || !strings.Contains(findings(o), "its monitor gave no answer") {
		t.Errorf("it is seen as %s, %s", o.State, findings(o))
	}
	l.policy = providertest.Waits(50 * time.Millisecond)
	l.do(dev, providers.Stop)
	if how := l.results[0].How; how != providers.Forced {
		t.Errorf("it ended by %s", how)
	}
	if o := l.object(devID); o.State != providers.StateOff || len(o.Findings) > 0 {
		t.Errorf("afterwards it is %s, %s", o.State, findings(o))
	}
}

// A disk is freed from a holder that is off or gone, and from nobody else.
//
// row L10
func TestLocks(t *testing.T) {
	l := newLab(t)
	lock := filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")
	l.do(dev, providers.Stop)
	if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a stop left the lock: %v", err)
	}
	elsewhere := t.TempDir()
	for _, test := range []struct{ target, kind, after string }{
		{filepath.Join(l.home, "gone"), "stale_lock", ""},
		{filepath.Join(l.home, "lab.dev"), "stale_lock", ""},
		{"/nowhere/at/all", "stale_lock", ""},
		{elsewhere, "held_lock", elsewhere},
	} {
		if err := os.Symlink(test.target, lock); err != nil {
			t.Fatal(err)
		}
		if got := findings(l.object(cacheID)); !strings.HasPrefix(got, test.kind) {
			t.Errorf("a lock of %s: %q", test.target, got)
		}
		l.do(cache, providers.Update)
		if got, _ := os.Readlink(lock); got != test.after { //nolint:errcheck // "" if it is gone
			t.Errorf("after an update the lock of %s is of %q", test.target, got)
		}
	}
	if err := l.try(cache, providers.Destroy); err == nil {
		t.Error("a disk that another home holds was deleted")
	}
	if err := l.try(dev, providers.Start); err == nil || !strings.Contains(err.Error(), "is locked by another instance") {
		t.Errorf("started with a disk that another home holds: %v", err)
	}
}

// The locks of all disks that an instance had are freed when it goes down, also of one that its definition
// does not name any more.
//
// row L10
func TestLocksOfFormerDisks(t *testing.T) {
	l := newLab(t)
	l.write(strings.Replace(l.read("lab.dev", "lima.yaml"), "lab.cache", "other", 1), "lab.dev", "lima.yaml")
	l.do(dev, providers.Stop)
	if _, err := os.Lstat(filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is there: %v", err)
	}
}
