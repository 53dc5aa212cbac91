package libvirt_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// instantly returns a policy whose waits are over at once.
func instantly(force cty.Value) cty.Value {
	return policy(map[string]cty.Value{"stop": cty.ObjectVal(map[string]cty.Value{
		"grace": cty.NumberIntVal(0), "force": force, "force_wait": cty.NumberIntVal(0),
	})})
}

// row A36
// row A37
func TestStop(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(l *lab)
		policy  cty.Value
		says    string
		calls   string
	}{
		{
			name: "a guest that hears", policy: policy(nil),
			says: `  . asked it to shut down, waiting up to 30s
stop: graceful, off
  = requested after 0s
  = gone after 0s: shut off (shutdown)
`,
			calls: "shutdown lab.dev\n",
		},
		{
			name: "a deaf guest", policy: instantly(cty.True), prepare: func(l *lab) { l.Deaf = true },
			says: `  . asked it to shut down, waiting up to 0s
  . forcing it off
stop: forced, off
  = requested after 0s
  = still running 0s after the request
  = forced after 0s
  = gone after 0s: shut off (destroyed)
`,
			calls: "shutdown lab.dev\ndestroy lab.dev\n",
		},
		{
			name: "a deaf guest that must not be forced", policy: instantly(cty.False), prepare: func(l *lab) { l.Deaf = true },
			says: `  . asked it to shut down, waiting up to 0s
stop: timeout still_running: stop: it is still running after 0s (running (booted))
  seen: requested after 0s
  seen: still running 0s after the request
  next: give it more time: stop { grace = "…" } in vm.dev
  next: or let vmctl force it: stop { force = true } in vm.dev
`,
			calls: "shutdown lab.dev\n",
		},
		{
			name: "QEMU does not end", policy: instantly(cty.True), prepare: func(l *lab) { l.Deaf, l.Stuck = true, true },
			says: `  . asked it to shut down, waiting up to 0s
  . forcing it off
stop: failed still_running: stop: it is still running after 0s (running (booted))
  seen: requested after 0s
  seen: still running 0s after the request
  seen: forced after 0s
  next: see why QEMU does not end: virsh -c qemu:///session domstate --reason lab.dev
`,
			calls: "shutdown lab.dev\ndestroy lab.dev\n",
		},
		{
			name: "a paused guest", policy: policy(nil),
			prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakePaused }) },
			says: `  . asked it to shut down, waiting up to 30s
stop: graceful, off
  = requested after 0s
  = gone after 0s: shut off (shutdown)
`,
			calls: "resume lab.dev\nshutdown lab.dev\n",
		},
		{
			name: "a guest that cannot hear", policy: policy(nil),
			prepare: func(l *lab) { l.Put(devID, func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeBroken }) },
			says: `  . forcing it off
stop: forced, off
  = paused (I/O error): it cannot hear a request
  = forced after 0s
  = gone after 0s: shut off (destroyed)
`,
			calls: "destroy lab.dev\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := made(t, vm(nil))
			if tc.prepare != nil {
				tc.prepare(l)
			}
			c := l.change(providers.Stop, vm(off))
			c.Policy = tc.policy
			wantText(t, "what was said", tc.says, l.apply(c))
			wantText(t, "calls", tc.calls, l.calls())
		})
	}
}

// A domain that was undefined while it ran is gone when it stops, and is defined again.
func TestStopOfWhatWasUndefined(t *testing.T) {
	l := made(t, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Transient = true })
	got := l.steady(l.apply(l.change(providers.Stop, vm(off))))
	if !strings.Contains(got, "stop: graceful, gone\n  = requested after 0s\n  = gone after 0s: gone\n") ||
		!strings.HasSuffix(got, "redefine: done, off\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestStopWhatIsOffAlready(t *testing.T) {
	l := made(t, vm(nil))
	c := l.change(providers.Stop, vm(off))
	l.apply(c)
	l.Calls = nil
	wantText(t, "what was said", "stop: already, off\n  = it is shut off (shutdown)\n", l.apply(c))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

func TestStopOfWhatIsNoLongerOurs(t *testing.T) {
	for _, change := range [][2]string{
		{`address="vm.dev"`, `address="vm.other"`}, {`id="` + lineage + `"`, `id="another"`}, {`of="` + devID + `"`, `of="` + otherID + `"`},
	} {
		l := made(t, vm(nil))
		c := l.change(providers.Stop, vm(off))
		l.Put(devID, func(d *libvirt.FakeDomain) { d.Configured = strings.Replace(d.Configured, change[0], change[1], 1) })
		wantText(t, change[1], `
stop: refused not_ours: stop vm.dev: domain lab.dev (11111111-2222-8333-8444-555555555555) does not bear the mark of vm.dev
  next: look at it: virsh -c qemu:///session dumpxml 11111111-2222-8333-8444-555555555555
`, l.apply(c))
		if len(l.Calls) > 0 {
			t.Errorf("calls %v", l.Calls)
		}
	}
}

// For a domain without a mark the record decides the ownership.
func TestStopOfWhatLostItsMark(t *testing.T) {
	l := made(t, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) {
		d.Configured = metadataElement.ReplaceAllString(d.Configured, "")
		d.Running = metadataElement.ReplaceAllString(d.Running, "")
	})
	c := l.change(providers.Stop, vm(off))
	c.Prior = vm(nil)
	if got := l.apply(c); !strings.Contains(got, "stop: graceful") {
		t.Errorf("stop of a domain that lost its mark, and is recorded:\n%s", got)
	}
}

var metadataElement = regexp.MustCompile(`(?s)<metadata>.*?</metadata>`)

// The domain is looked at again before it is forced.
func TestStopOfWhatWasTakenOverMeanwhile(t *testing.T) {
	l := made(t, vm(nil))
	l.Deaf = true
	l.Sleeping = func() {
		l.Put(devID, func(d *libvirt.FakeDomain) {
			d.Configured = strings.Replace(d.Configured, `address="vm.dev"`, `address="vm.other"`, 1)
		})
	}
	wantText(t, "what was said", `
  . asked it to shut down, waiting up to 30s
stop: stale not_the_same: stop: it is not the one that was to be stopped: it no longer bears the mark of vm.dev
  seen: requested after 0s
`, l.apply(l.change(providers.Stop, vm(off))))
	wantText(t, "calls", "shutdown lab.dev\n", l.calls())
}

// A domain that cannot be ended keeps all that belongs to it, and is observed as running.
//
// row L08
// row L09
func TestDestroyOfWhatDoesNotEnd(t *testing.T) {
	l := made(t, vm(nil))
	l.Deaf, l.Stuck = true, true
	c := l.change(providers.Destroy, cty.NilVal)
	c.Policy = instantly(cty.True)
	before := l.Contents()
	wantText(t, "what was said", `
  . asked it to shut down, waiting up to 0s
  . forcing it off
stop: failed still_running: stop: it is still running after 0s (running (booted))
  seen: requested after 0s
  seen: still running 0s after the request
  seen: forced after 0s
  next: see why QEMU does not end: virsh -c qemu:///session domstate --reason lab.dev
`, l.apply(c))
	wantText(t, "calls", "shutdown lab.dev\ndestroy lab.dev\n", l.calls())
	wantText(t, "volumes", before, l.Contents())
	if o := l.object(vm(nil)); o.State != providers.StateRunning || o.Fingerprint != c.Object.Fingerprint {
		t.Errorf("it is %s", o.State)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "data/keys/"+devID)); err != nil {
		t.Error(err)
	}
}

// A domain that cannot be read for a moment is looked at again.
//
// row L57
func TestStopThatIsUnreadableForAWhile(t *testing.T) {
	l := made(t, vm(nil))
	l.Deaf = true
	looks := 0
	l.Sleeping = func() {
		looks++
		switch looks {
		case 1:
			l.Unreadable["lab.dev"] = libvirt.ErrLibvirt("cannot acquire state change lock")
		case 3:
			delete(l.Unreadable, "lab.dev")
			l.Put(devID, func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakePower(5, 1), "" })
		}
	}
	wantText(t, "what was said", `
  . asked it to shut down, waiting up to 30s
stop: graceful, off
  = requested after 0s
  = gone after 800ms: shut off (shutdown)
`, l.apply(l.change(providers.Stop, vm(off))))
	if looks != 3 {
		t.Errorf("it was looked at %d times", looks)
	}
}

func TestDeleteNeverEndsWhatRuns(t *testing.T) {
	l := made(t, vm(nil))
	c := l.change(providers.Destroy, cty.NilVal)
	steps, err := l.provider.Steps(c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.provider.Do(t.Context(), providers.Work{Step: steps[1], Expect: c.Object.Fingerprint}, func(providers.Progress) {})
	wantText(t, "what was said", "delete: refused still_running: delete vm.dev: it is running (booted)\n", l.failure("delete", err))
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

func TestRestartOfWhatWasUndefinedWhileItRan(t *testing.T) {
	l := made(t, vm(nil))
	l.Put(devID, func(d *libvirt.FakeDomain) { d.Transient = true })
	got := l.apply(l.change(providers.RestartIt, vm(nil)))
	if !strings.HasSuffix(got, "redefine: done, off\nstart: done, running\n") {
		t.Errorf("got\n%s", got)
	}
	if o := l.object(vm(nil)); len(o.Findings) > 0 {
		t.Errorf("findings %+v", o.Findings)
	}
}

// row L29
func TestDestroyLeavesNothing(t *testing.T) {
	l := made(t, vm(nil))
	keys := initrdOf(l)
	wantText(t, "what was said", `
  . asked it to shut down, waiting up to 30s
stop: graceful, off
  = requested after 0s
  = gone after 0s: shut off (shutdown)
delete: done, gone
  = removed volumes: DEV.console.log, DEV.initrd-KEYS, DEV.kernel-6923dd1bc046
  = removed the empty pool vmctl-lab-k7m2qd9x4r
`, strings.ReplaceAll(l.apply(l.change(providers.Destroy, cty.NilVal)), keys, "KEYS"))
	wantText(t, "calls: ended, forgotten by libvirt, and its files last", `
shutdown lab.dev
undefine lab.dev
delete DEV.console.log
delete DEV.initrd-KEYS
delete DEV.kernel-6923dd1bc046
remove-pool vmctl-lab-k7m2qd9x4r
`, strings.ReplaceAll(l.calls(), keys, "KEYS"))
	wantText(t, "pools", "", l.Contents())
	if _, err := os.Stat(filepath.Join(l.dir, "data/keys/"+devID)); err == nil {
		t.Error("the keys are left behind")
	}
}

func TestDestroyKeepsWhatOthersUse(t *testing.T) {
	l := newLab(t)
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///system"), "pool": null})
	l.PutPool("default", libvirt.FakePool{Type: "dir", Path: "/images", Active: true, Volumes: map[string][]byte{
		"lab.dev.qcow2": nil, "lab.dev2.kernel-6923dd1bc046": nil, devID + ".kernel-of-mine": nil,
	}})
	l.open()
	l.apply(create(vm(off)))
	l.apply(l.change(providers.Destroy, cty.NilVal))
	wantText(t, "pools", "pool default\n  DEV.kernel-of-mine\n  lab.dev.qcow2\n  lab.dev2.kernel-6923dd1bc046\n", l.Contents())
}

func TestDelete(t *testing.T) {
	l := made(t, vm(off))
	c := l.change(providers.Destroy, cty.NilVal)
	l.apply(l.change(providers.Start, vm(nil)))
	wantText(t, "what runs meanwhile", `
delete: stale stale_plan: delete vm.dev: domain lab.dev was changed since the plan was made
  seen: planned on run state "off"
  seen: found run state "running"
`, func() string {
		got, _, _ := strings.Cut(l.apply(c), `  seen: found running`)
		return got
	}())
	l.Drop(devID)
	got := l.apply(c)
	if !strings.HasPrefix(got, "delete: already_gone, gone\n  = removed volumes: "+devID+".console.log, ") {
		t.Errorf("what is gone already:\n%s", got)
	}
	wantText(t, "pools", "", l.Contents())
}
