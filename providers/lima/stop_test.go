//go:build unix

package lima_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/process"
	"vmctl/internal/real"
	"vmctl/providers"
	"vmctl/providers/providertest"
)

// stop carries out the stop of the instance, and hears what it says.
func (l *lab) stop(log providers.Log) (providers.Result, error) {
	l.t.Helper()
	o := l.object(devID)
	c := l.change(dev, providers.Stop, o)
	steps, err := l.p.Steps(c)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.p.Do(l.t.Context(), providers.Work{Step: steps[0], Expect: o.Fingerprint, Prior: l.vm, Want: l.vm, Policy: l.policy, Generation: 1, Uses: c.Uses}, log)
}

// A stop of a guest that is still booting waits until it is up, or until its time for that is over. Then it is
// requested, and forced only if it does not hear that either. No lock stays.
//
// Trap 4: the host agent of Lima v2.2.0 presses the power button once, which a guest that boots does not hear; it
// waits 3 minutes and kills QEMU. It frees additional disks only if its own routines were through before, so that their
// locks stay.
//
// row L19, of Lima's VMs
func TestStopDuringBoot(t *testing.T) {
	slow := set("params", cty.MapVal(map[string]cty.Value{"slow": cty.StringVal("yes")}))
	for _, test := range []struct {
		name   string
		boots  bool
		policy cty.Value
		says   string
		how    providers.How
	}{
		{"it comes up", true, providertest.Waits(time.Minute), "it was still starting, and came up", providers.Graceful},
		{"it does not", false, briefly(t), "it was still starting, and did not come up within 1s", providers.Forced},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, set("running", cty.False), slow)
			if err := l.start(t.Context(), l.change(dev, providers.Start, l.object(devID)), quiet); err != nil {
				t.Fatal(err)
			}
			l.policy = test.policy
			r, err := l.stop(func(p providers.Progress) {
				if test.boots && strings.HasPrefix(p.Text, "it is still starting: waiting up to") {
					l.write("", "lab.dev", "booted")
				}
			})
			if err != nil || r.How != test.how || !slices.Contains(r.Evidence, test.says) {
				t.Errorf("it ended by %s, %v, with %q; want %s, %q", r.How, err, r.Evidence, test.how, test.says)
			}
			if _, err := os.Lstat(filepath.Join(l.home, "_disks", "lab.cache", "in_use_by")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the lock of its disk: %v", err)
			}
		})
	}
}

// briefly returns a policy that waits a second for a guest to come up, and no longer than a moment for its end.
func briefly(t *testing.T) cty.Value {
	t.Helper()
	all := providertest.Waits(time.Millisecond).AsValueMap()
	ssh := all["ssh"].AsValueMap()
	ssh["wait_timeout"] = cty.NumberIntVal(1)
	all["ssh"] = cty.ObjectVal(ssh)
	return cty.ObjectVal(all)
}

// Whatever a pid file says, only the processes of the instance are requested to end, forced or waited for.
//
// Trap 5: Lima v2.2.0 sends its signals to the pids in ha.pid and qemu.pid, whosever these are by now.
//
// row L05, of Lima's VMs
// row L34, of Lima's VMs
func TestPidOfAnother(t *testing.T) {
	real.Long(t)
	l := newLab(t)
	stranger := l.sleeper()
	alive := func(after string) {
		t.Helper()
		if err := syscall.Kill(stranger.Process.Pid, 0); err != nil {
			t.Fatalf("after %s the other process: %v", after, err)
		}
		if id, err := (process.Host{}).Capture(t.Context(), stranger.Process.Pid); err != nil {
			t.Fatalf("after %s the other process: %+v, %v", after, id, err)
		}
	}
	for _, pid := range []string{strconv.Itoa(stranger.Process.Pid), "0", "1", "-1", "-5"} {
		for _, action := range []providers.Action{providers.Stop, providers.RestartIt} {
			for _, file := range []string{"ha.pid", "qemu.pid"} {
				l.write(pid+"\n", "lab.dev", file)
			}
			if o := l.object(devID); o.State != providers.StateRunning {
				t.Fatalf("with the pid %s in its files it is %s", pid, o.State)
			}
			l.do(dev, action)
			alive(string(action) + " with the pid " + pid)
			if action == providers.Stop {
				if n := len(l.processesOf("lab.dev")); n > 0 {
					t.Fatalf("%d processes run after a stop with the pid %s", n, pid)
				}
				l.do(dev, providers.Start)
			}
		}
	}
	l.write(strconv.Itoa(stranger.Process.Pid), "lab.dev", "ha.pid")
	l.do(dev, providers.Destroy)
	alive("a destruction")
}

// A process that has ended and that nobody has waited for is gone.
//
// Trap 7: Lima v2.2.0 asks by signal 0 whether a process lives, which a zombie answers: the instance is Running, or
// Broken, for as long as nobody waits for it.
func TestZombie(t *testing.T) {
	h := newHouse(t)
	p, err := h.limaType().Open(t.Context(), h.settings())
	if err != nil {
		t.Fatal(err)
	}
	h.write(theirs, "box", "lima.yaml")
	h.write("", "box", "disk")
	l := &lab{house: h, p: p}
	state := func() string {
		inv, err := l.p.Observe(t.Context(), providers.Query{})
		if err != nil || len(inv.Objects) != 1 {
			t.Fatalf("objects %v, %v", inv.Objects, err)
		}
		return inv.Objects[0].State
	}
	agent, release := h.heldAgent("box")
	h.write(strconv.Itoa(agent.Process.Pid), "box", "ha.pid")
	if got := state(); got != providers.StateBroken {
		t.Fatalf("with a host agent alone it is %s", got)
	}
	id, err := (process.Host{}).Capture(t.Context(), agent.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := (process.Host{}).Wait(context.WithoutCancel(t.Context()), id); err != nil { // it is a zombie by now
		t.Fatal(err)
	}
	if err := syscall.Kill(agent.Process.Pid, 0); err != nil {
		t.Fatalf("it is no zombie: %v", err)
	}
	if got := state(); got != providers.StateOff {
		t.Errorf("with a zombie it is %s", got)
	}
	_ = agent.Wait() //nolint:errcheck // its line was empty
}

// patience returns a policy that never forces, and waits that long for the guest.
func patience(grace time.Duration) cty.Value {
	all := providertest.Waits(grace).AsValueMap()
	stop := all["stop"].AsValueMap()
	stop["force"] = cty.False
	all["stop"] = cty.ObjectVal(stop)
	return cty.ObjectVal(all)
}

// A stop that may not force leaves a guest that nobody can ask: the host agent, which would kill QEMU at once, is not
// told to end.
func TestStopNeverForces(t *testing.T) {
	l := newLab(t)
	l.policy = patience(time.Minute)
	before := l.processesOf("lab.dev")
	if err := os.Remove(l.inDev("qmp.sock")); err != nil {
		t.Fatal(err)
	}
	if r, err := l.stop(quiet); err == nil {
		t.Errorf("it was stopped: %s, %q", r.How, r.Evidence)
	}
	if now := l.processesOf("lab.dev"); len(before) != 2 || len(now) != 2 || now[0].PID != before[0].PID || now[1].PID != before[1].PID {
		t.Errorf("its processes are %v, and were %v", now, before)
	}
	if log := l.read("lab.dev", "ha.stderr.log"); strings.Contains(log, "shutting down") {
		t.Errorf("its host agent was told to end:\n%s", log)
	}
}

// A guest whose host agent hangs is asked to shut down all the same. Once it has, the host agent is ended, which
// forces no guest.
func TestStopBesideHungAgent(t *testing.T) {
	real.Long(t)
	l := newLab(t)
	l.policy = patience(time.Minute)
	agent := l.pid("ha.pid")
	if err := syscall.Kill(agent, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r, err := l.stop(quiet)
	if err != nil || r.How != providers.Graceful {
		t.Errorf("it ended by %s, %v, with %q", r.How, err, r.Evidence)
	}
	if log := l.read("lab.dev", "serial.log"); !strings.Contains(log, "the guest shuts down") {
		t.Errorf("the guest was not asked:\n%s", log)
	}
	if left := l.processesOf("lab.dev"); len(left) != 0 {
		t.Errorf("%d processes are left", len(left))
	}
}
