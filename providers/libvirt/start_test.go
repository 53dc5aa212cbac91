package libvirt_test

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

func TestStart(t *testing.T) {
	for _, tc := range []struct {
		name    string
		want    map[string]cty.Value
		prepare func(l *lab)
		says    string
		calls   string
	}{
		{
			name: "off", says: "start: done, running\n",
			calls: "start lab.dev on qemu\ndefine lab.dev\n",
		},
		{
			name:    "running already",
			prepare: func(l *lab) { l.apply(l.change(providers.Start, vm(nil))) },
			says:    "start: already, running\n  = it is running (booted)\n",
		},
		{
			name: "paused by the user",
			prepare: func(l *lab) {
				l.apply(l.change(providers.Start, vm(nil)))
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused })
			},
			says:  "start: done, running\n  = it was paused (user): resumed\n",
			calls: "resume lab.dev\n",
		},
		{
			name: "broken",
			prepare: func(l *lab) {
				l.apply(l.change(providers.Start, vm(nil)))
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeBroken })
			},
			says: `  . forcing it off
recover: forced, off
  = paused (I/O error): it cannot hear a request
  = forced after 0s
  = gone after 0s: shut off (destroyed)
start: done, running
`,
			calls: "destroy lab.dev\nstart lab.dev on qemu\n",
		},
		{
			name: "crashed",
			prepare: func(l *lab) {
				l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeCrashed })
			},
			says: "start: done, running\n", calls: "start lab.dev on qemu\ndefine lab.dev\n",
		},
		{
			name: "a fixed port is taken", want: map[string]cty.Value{"port_forward": forwards("auto", "8081")},
			prepare: func(l *lab) { l.Taken = []uint16{8081} },
			says: `start: failed port_taken: start vm.dev: host port 127.0.0.1:8081/tcp is taken
  next: see who holds it: ss -ltnp 'sport = :8081'
  next: or set another host port in port_forward of vm.dev, or "auto"
`,
			calls: "start lab.dev on qemu\n",
		},
		{
			name: "a fixed port is taken, and only QEMU's log says so", want: map[string]cty.Value{"port_forward": forwards("auto", "8081")},
			prepare: func(l *lab) {
				l.Refuses["start"] = libvirt.ErrLibvirt("failed to connect to monitor socket: Connection refused")
				l.file("cache/libvirt/qemu/log/lab.dev.log", "-netdev \\\nuser \\\n-msg timestamp=on\n"+
					"qemu-system-x86_64: -netdev user: Could not set up host forwarding rule 'tcp:127.0.0.1:8081-:8081'\n")
			},
			says: `start: failed port_taken: start vm.dev: host port 127.0.0.1:8081/tcp is taken
  next: see who holds it: ss -ltnp 'sport = :8081'
  next: or set another host port in port_forward of vm.dev, or "auto"
`,
			calls: "start lab.dev on qemu\n",
		},
		{
			name: "no port is left",
			prepare: func(l *lab) {
				l.Refuses["start"] = libvirt.ErrLibvirt("Could not set up host forwarding rule 'tcp:127.0.0.1:0-:22'")
			},
			says: `start: failed start_failed: start vm.dev: Could not set up host forwarding rule 'tcp:127.0.0.1:0-:22'
  seen: last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log:
  seen:   qemu-system-x86_64: cannot set up guest memory
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`,
			calls: "start lab.dev on qemu\n",
		},
		{
			name: "QEMU ends at once",
			prepare: func(l *lab) {
				l.Refuses["start"] = libvirt.ErrLibvirt("internal error: qemu unexpectedly closed the monitor")
			},
			says: `start: failed start_failed: start vm.dev: internal error: qemu unexpectedly closed the monitor
  seen: last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log:
  seen:   qemu-system-x86_64: cannot set up guest memory
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`,
			calls: "start lab.dev on qemu\n",
		},
		{
			name: "KVM ends at once, and was asked for", want: map[string]cty.Value{"accel": cty.StringVal("kvm")},
			prepare: func(l *lab) { l.KVMBreaks = "start" },
			says: `start: failed start_failed: start vm.dev: internal error: process exited while connecting to monitor: qemu-system-x86_64: error: failed to set MSR 0x10a
  seen: last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log:
  seen:   qemu-system-x86_64: cannot set up guest memory
  next: if KVM does not work here: accel = "auto" in vm.dev
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`,
			calls: "start lab.dev on kvm\n",
		},
		{
			name: "KVM pauses the guest, and was asked for", want: map[string]cty.Value{"accel": cty.StringVal("kvm")},
			prepare: func(l *lab) { l.KVMBreaks = "pause"; l.BootLog = "Booting\r\n[ 0.0] hello\r\n" },
			says: `start: failed guest_stopped: start vm.dev: the guest is paused (internal error)
  seen: QEMU says: VM status: paused (internal-error)
  seen: last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log:
  seen:   qemu-system-x86_64: cannot set up guest memory
  seen: the guest's boot log is DIR/data/libvirt/pool/DEV.console.log
  seen:   Booting
  seen:   [ 0.0] hello
  next: if KVM does not work here: accel = "auto" in vm.dev
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`,
			calls: "start lab.dev on kvm\n",
		},
		{
			name: "KVM ends at once, and was vmctl's choice", want: map[string]cty.Value{"accel": cty.StringVal("auto")},
			prepare: func(l *lab) { l.KVMBreaks = "start" },
			says: `  . KVM does not work here (internal error: process exited while connecting to monitor: qemu-system-x86_64: error: failed to set MSR 0x10a): starting again with TCG
start: done, running
  = accel = "auto": KVM did not work (internal error: process exited while connecting to monitor: qemu-system-x86_64: error: failed to set MSR 0x10a), TCG does
`,
			calls: "start lab.dev on kvm\ndefine lab.dev\nstart lab.dev on qemu\ndefine lab.dev\n",
		},
		{
			name: "KVM pauses the guest, and was vmctl's choice", want: map[string]cty.Value{"accel": cty.StringVal("auto")},
			prepare: func(l *lab) { l.KVMBreaks = "pause" },
			says: `  . KVM does not work here (paused (internal error)): starting again with TCG
start: done, running
  = accel = "auto": KVM did not work (paused (internal error)), TCG does
`,
			calls: "start lab.dev on kvm\ndestroy lab.dev\ndefine lab.dev\nstart lab.dev on qemu\ndefine lab.dev\n",
		},
		{
			name: "a guest that powers itself off is no trouble of KVM's", want: map[string]cty.Value{"accel": cty.StringVal("auto")},
			prepare: func(l *lab) { l.KVMBreaks = "power off" },
			says: `start: failed guest_stopped: start vm.dev: the guest is shut off (shutdown)
  seen: last lines of QEMU's log DIR/cache/libvirt/qemu/log/lab.dev.log:
  seen:   qemu-system-x86_64: cannot set up guest memory
  seen: the guest's boot log is DIR/data/libvirt/pool/DEV.console.log
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`,
			calls: "start lab.dev on kvm\n",
		},
		{
			name: "KVM works", want: map[string]cty.Value{"accel": cty.StringVal("auto")},
			says: "start: done, running\n", calls: "start lab.dev on kvm\ndefine lab.dev\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changes := map[string]cty.Value{"running": cty.False}
			for k, v := range tc.want {
				changes[k] = v
			}
			l := made(t, vm(changes))
			l.file("cache/libvirt/qemu/log/lab.dev.log", "an older run\n-name lab.dev \\\n-msg timestamp=on\nqemu-system-x86_64: cannot set up guest memory\n")
			if tc.prepare != nil {
				tc.prepare(l)
			}
			l.Calls = nil
			changes["running"] = cty.True
			wantText(t, "what was said", tc.says, l.apply(l.change(providers.Start, vm(changes))))
			wantText(t, "calls", tc.calls, strings.TrimPrefix(l.calls(), "\n"))
		})
	}
}

// A failure of KVM is remembered until the machine is booted again.
func TestAccelIsRemembered(t *testing.T) {
	auto := vm(map[string]cty.Value{"accel": cty.StringVal("auto")})
	l := newLab(t)
	l.KVMBreaks = "pause"
	first := l.apply(create(auto))
	if !strings.Contains(first, "starting again with TCG") {
		t.Fatal(first)
	}
	restart := func() string {
		l.Calls = nil
		l.apply(l.change(providers.RestartIt, auto))
		return l.calls()
	}
	wantText(t, "a restart in the same boot", "shutdown lab.dev\nstart lab.dev on qemu\n", restart())
	wantText(t, "what doctor says", "tcg: KVM did not work since this machine was booted: paused (internal error)", l.observe(auto).Host["accel"])
	l.file("proc/sys/kernel/random/boot_id", "boot-2\n")
	l.KVMBreaks = ""
	wantText(t, "a change after the machine was booted again", `
shutdown lab.dev
define lab.dev
start lab.dev on kvm
`, func() string {
		l.Calls = nil
		l.apply(l.change(providers.RestartIt, auto, "memory"))
		return l.calls()
	}())
	wantText(t, "what doctor says then", "kvm", l.observe(auto).Host["accel"])
}

func TestAccelWithoutHardware(t *testing.T) {
	auto := vm(map[string]cty.Value{"accel": cty.StringVal("auto")})
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		says    string
	}{
		{
			name: "no /dev/kvm", prepare: func(l *lab) { l.NoKVM = true },
			says: `  . accel = "auto": libvirt finds no usable /dev/kvm, so QEMU emulates the CPU (TCG)`,
		},
		{
			name: "a processor without virtualization", prepare: func(l *lab) { l.file("proc/cpuinfo", "flags\t\t: fpu sse\n") },
			says: `  . accel = "auto": this processor shows no hardware virtualization (neither vmx nor svm), so QEMU emulates the CPU (TCG)`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLab(t)
			tc.prepare(l)
			got := l.apply(create(auto))
			if !strings.Contains(got, tc.says+"\n") {
				t.Errorf("got\n%s", got)
			}
			if !strings.Contains(l.calls(), "start lab.dev on qemu\n") {
				t.Errorf("calls\n%s", l.calls())
			}
		})
	}
}

// Host ports that the kernel chose are asked for again, as long as they are free.
func TestPortsAreSticky(t *testing.T) {
	l := made(t, vm(nil))
	before := l.object(vm(nil))
	wantText(t, "ports", "40001 40002", ports(before))
	l.apply(l.change(providers.Stop, vm(off)))
	wantText(t, "ports of what is off", "null null", ports(l.object(vm(off))))
	l.apply(l.change(providers.Start, vm(nil)))
	wantText(t, "ports after a restart", "40001 40002", ports(l.object(vm(nil))))
	l.apply(l.change(providers.RestartIt, vm(nil), "memory"))
	wantText(t, "ports after a change", "40001 40002", ports(l.object(vm(nil))))
	l.apply(l.change(providers.Stop, vm(off)))
	l.Taken = []uint16{40001}
	got := l.apply(l.change(providers.Start, vm(nil)))
	wantText(t, "what was said", "  . host port 40001 is taken by now: another one is chosen\nstart: done, running\n", got)
	wantText(t, "ports with one taken", "40003 40002", ports(l.object(vm(nil))))
}

// The user's own forward to the guest's SSH port is told from vmctl's.
func TestSSHPortAmongOthers(t *testing.T) {
	own := forwards("2222").AsValueSlice()[0].AsValueMap()
	own["guest"] = cty.NumberIntVal(22)
	want := vm(map[string]cty.Value{"port_forward": cty.ListVal([]cty.Value{cty.ObjectVal(own)})})
	l := made(t, want)
	l.Put(devID, func(d *libvirt.FakeDomain) { // as before its port was kept; QEMU tells of them in no order
		d.Held[0], d.Held[1] = d.Held[1], d.Held[0]
		d.Configured = strings.Replace(d.Configured, "127.0.0.1:40001-:22", "127.0.0.1:0-:22", 1)
	})
	attrs := l.object(want).Attrs
	if got := attrs.GetAttr("ssh_port"); !got.RawEquals(cty.NumberIntVal(40001)) {
		t.Errorf("ssh_port %#v", got)
	}
	if got := attrs.GetAttr("ports").AsValueMap()["22"]; !got.RawEquals(cty.NumberIntVal(2222)) {
		t.Errorf("ports[22] %#v", got)
	}
}

// The record has the ports also if the definition lacks them.
func TestPortsOfTheRecord(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Start, vm(nil))
	c.Prior = cty.ObjectVal(map[string]cty.Value{
		"ssh_port": cty.NumberIntVal(41000), "ports": cty.MapVal(map[string]cty.Value{"8080": cty.NumberIntVal(41001)}),
	})
	l.apply(c)
	wantText(t, "ports", "41000 41001", ports(l.object(vm(nil))))
}

func ports(o *providers.Object) string {
	ssh, web := "null", "null"
	if v := o.Attrs.GetAttr("ssh_port"); !v.IsNull() {
		ssh = v.AsBigFloat().String()
	}
	if v, ok := o.Attrs.GetAttr("ports").AsValueMap()["8080"]; ok {
		web = v.AsBigFloat().String()
	}
	return ssh + " " + web
}

func TestStartOfWhatEndsAtOnce(t *testing.T) {
	l := made(t, vm(off))
	l.meanwhile(func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeCrashed, "" })
	wantText(t, "what was said", `
start: failed guest_stopped: start vm.dev: the guest is shut off (crashed)
  seen: the guest's boot log is DIR/data/libvirt/pool/DEV.console.log
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`, l.apply(l.change(providers.Start, vm(nil))))
}

// A start is watched for as long as it takes to know that the guest runs, unless the next step
// watches it.
func TestStartIsWatched(t *testing.T) {
	for _, tc := range []struct {
		accel string
		wait  cty.Value
		looks int
	}{
		{"tcg", cty.False, 3},
		{"kvm", cty.False, 75},
		{"tcg", cty.True, 0},
		{"kvm", cty.True, 0},
	} {
		want := vm(map[string]cty.Value{"accel": cty.StringVal(tc.accel)})
		l := made(t, vm(map[string]cty.Value{"accel": cty.StringVal(tc.accel), "running": cty.False}))
		looks := 0
		l.Sleeping = func() { looks++ }
		c := l.change(providers.Start, want)
		c.Policy = policy(map[string]cty.Value{
			"ssh": cty.ObjectVal(map[string]cty.Value{"wait": tc.wait, "wait_timeout": cty.NumberIntVal(300)}),
		})
		steps, err := l.provider.Steps(c)
		if err != nil {
			t.Fatal(err)
		}
		work := providers.Work{Step: steps[0], Expect: c.Object.Fingerprint, Want: want, Policy: c.Policy, Generation: 2}
		if _, err := l.provider.Do(t.Context(), work, func(providers.Progress) {}); err != nil || looks != tc.looks {
			t.Errorf("%s, wait %#v: %d looks, want %d (%v)", tc.accel, tc.wait, looks, tc.looks, err)
		}
	}
}

func TestStartIsStale(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Start, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = strings.Replace(d.Configured, "<vcpu>1</vcpu>", "<vcpu>4</vcpu>", 1)
	})
	wantText(t, "changed meanwhile", `
start: stale stale_plan: start vm.dev: domain lab.dev was changed since the plan was made
  seen: planned on cpus "1"
  seen: found cpus "4"
  next: vmctl plan
`, l.apply(c))
	l.Drop(devID)
	wantText(t, "gone meanwhile", `
start: stale stale_plan: start vm.dev: domain lab.dev (11111111-2222-8333-8444-555555555555) is gone since the plan was made
  next: vmctl plan
`, l.apply(c))
}
