package libvirt_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/libvirt"
)

// booted returns a lab whose vm.dev has an SSH server, which knows the keys that vmctl gave
// it. vm.dev is off.
func booted(t *testing.T, change func(*sshtest.Server)) *lab {
	t.Helper()
	return bootedOn(t, "tcg", change)
}

func bootedOn(t *testing.T, accel string, change func(*sshtest.Server)) *lab {
	t.Helper()
	l := made(t, vm(map[string]cty.Value{"accel": cty.StringVal(accel), "running": cty.False}))
	s := l.server(devID)
	if change != nil {
		change(&s)
	}
	l.SSH["lab.dev"] = uint16(s.Start(t))
	l.BootLog = "Linux version 6.1\r\nKernel panic - not syncing\r\n"
	return l
}

// waiting starts vm.dev and waits for its SSH.
func (l *lab) waiting(ctx context.Context, want cty.Value) string {
	l.t.Helper()
	c := l.change(providers.Start, want)
	c.Policy = policy(map[string]cty.Value{
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(300)}),
	})
	port := strconv.Itoa(int(l.SSH["lab.dev"]))
	return strings.ReplaceAll(l.applyIn(ctx, c), port, "PORT")
}

// row L46, of SSH: it runs before it answers
func TestWaitSSH(t *testing.T) {
	l := booted(t, nil)
	wantText(t, "what was said", `
start: done, running
  . trying root@127.0.0.1:PORT
wait_ssh: done, running
`, l.waiting(t.Context(), vm(nil)))
}

// row A46
func TestWaitSSHInVain(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.Authorized = nil })
	l.apply(l.change(providers.Start, vm(nil)))
	ctx := newLate()
	ctx.end()
	got := l.waitOnly(ctx)
	wantText(t, "what was said", `
  . trying root@127.0.0.1:PORT
wait_ssh: timeout no_ssh: wait for SSH of vm.dev: root@127.0.0.1:PORT did not let vmctl in within 5m0s
  seen: last attempt: no attempt was made
  seen: the guest's boot log is DIR/data/libvirt/pool/DEV.console.log
  seen:   Linux version 6.1
  seen:   Kernel panic - not syncing
  next: read the guest's boot log: DIR/data/libvirt/pool/DEV.console.log
  next: or watch it boot: virsh -c qemu:///session console lab.dev
  next: or give it more time: ssh { wait_timeout = "…" } in vm.dev
`, got)
}

// waitOnly does the last step of a start, with vm.dev running already.
func (l *lab) waitOnly(ctx context.Context) string {
	l.t.Helper()
	return l.waitFor(ctx, vm(nil))
}

func (l *lab) waitFor(ctx context.Context, want cty.Value) string {
	l.t.Helper()
	c := l.change(providers.Start, want)
	c.Policy = policy(map[string]cty.Value{
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(300)}),
	})
	got := l.applyIn(ctx, c)
	_, got, _ = strings.Cut(got, "= it is running (booted)\n")
	return strings.ReplaceAll(got, strconv.Itoa(int(l.SSH["lab.dev"])), "PORT")
}

// late is a context whose deadline expires when done is closed.
type late struct{ done chan struct{} }

func newLate() *late { return &late{done: make(chan struct{})} }

func (l *late) end() { close(l.done) }

func (l *late) Done() <-chan struct{} { return l.done }

func (l *late) Deadline() (time.Time, bool) { return time.Time{}, false }

func (l *late) Value(any) any { return nil }

func (l *late) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestWaitSSHInterrupted(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.Authorized = nil })
	l.apply(l.change(providers.Start, vm(nil)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantText(t, "what was said", `
  . trying root@127.0.0.1:PORT
wait_ssh: failed interrupted: wait for SSH of vm.dev: interrupted; it runs on
  seen: last attempt: no attempt was made
`, l.waitOnly(ctx))
}

// row A46
func TestWaitSSHRefused(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.Authorized = nil })
	l.apply(l.change(providers.Start, vm(nil)))
	ctx := newLate()
	tries := 0
	l.Sleeping = func() {
		if tries++; tries == 3 {
			ctx.end()
		}
	}
	got := l.waitOnly(ctx)
	for _, want := range []string{
		"wait_ssh: timeout ssh_refused: wait for SSH of vm.dev: root@127.0.0.1:PORT did not let vmctl in within 5m0s\n",
		"  seen: last attempt: the server does not let root in with KEYS/id_ed25519\n",
		"  next: see that the guest takes /vmctl/authorized_keys for root\n",
		"  next: read the guest's boot log: DIR/data/libvirt/pool/DEV.console.log\n",
	} {
		if !strings.Contains(named(got), want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
}

// row A47
func TestWaitSSHWithAnotherHostKey(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.HostKey = sshtest.NewKey(t) })
	got := l.waiting(t.Context(), vm(nil))
	_, got, _ = strings.Cut(got, "wait_ssh: ")
	head, rest, _ := strings.Cut(got, " shows the host key ")
	_, rest, _ = strings.Cut(rest, ", which ")
	wantText(t, "what was said", `
refused host_key_changed: wait for SSH of vm.dev: lab.dev shows …, which the owner mark pins
  seen: a guest that vmctl made shows the key that vmctl gave it: another key means another guest, another system in it, or somebody in between
  next: if the guest makes its own host key: ssh { host_key = "accept-new" } in vm.dev, and remove KEYS/known_hosts
  next: otherwise find out who answers: ssh-keyscan -p PORT 127.0.0.1
  next: to give it new keys, if it boots what vmctl made: vmctl vm rekey vm.dev
`, head+" shows …, which "+rest)
}

func TestWaitSSHAcceptsANewHostKey(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.HostKey = sshtest.NewKey(t) })
	removeFile(t, filepath.Join(l.dir, "data/keys/"+devID+"/known_hosts"))
	want := vm(map[string]cty.Value{"ssh": cty.ObjectVal(map[string]cty.Value{
		"user": cty.StringVal("root"), "identity": null, "host_key": cty.StringVal("accept-new"),
	})})
	if got := l.waiting(t.Context(), want); !strings.HasSuffix(got, "wait_ssh: done, running\n") {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(l.dir, "data/keys/"+devID+"/known_hosts")); err != nil {
		t.Errorf("the key is not kept: %v", err)
	}
}

// meanwhile changes vm.dev once, when something waits.
func (l *lab) meanwhile(edit func(*libvirt.FakeDomain)) {
	l.Sleeping = func() {
		l.Sleeping = nil
		l.Put(devID, edit)
	}
}

func TestWaitSSHOfAGuestThatEnds(t *testing.T) {
	l := booted(t, func(s *sshtest.Server) { s.Authorized = nil })
	l.apply(l.change(providers.Start, vm(nil)))
	l.meanwhile(func(d *libvirt.FakeDomain) { d.Power, d.Running = libvirt.FakeCrashed, "" })
	got := l.waitOnly(t.Context())
	wantText(t, "what was said", `
  . trying root@127.0.0.1:PORT
  . trying root@127.0.0.1:PORT: the server does not let root in with KEYS/id_ed25519
wait_ssh: failed guest_stopped: wait for SSH of vm.dev: the guest is shut off (crashed)
  seen: the guest's boot log is DIR/data/libvirt/pool/DEV.console.log
  seen:   Linux version 6.1
  seen:   Kernel panic - not syncing
  next: see QEMU's log: DIR/cache/libvirt/qemu/log/lab.dev.log
`, got)
}

// A guest may go on for a minute under a KVM that does not work before it ends.
func TestWaitSSHFallsBack(t *testing.T) {
	auto := vm(map[string]cty.Value{"accel": cty.StringVal("auto")})
	l := bootedOn(t, "auto", func(s *sshtest.Server) { s.Authorized = nil })
	good := l.server(devID).Start(t)
	l.apply(l.change(providers.Start, auto))
	l.SSHAfterTCG = uint16(good)
	l.meanwhile(func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeInternalError })
	l.Calls = nil
	c := l.change(providers.Start, auto)
	c.Policy = policy(map[string]cty.Value{
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(300)}),
	})
	got := l.apply(c)
	for _, want := range []string{
		"  . KVM does not work here (paused (internal error)): starting again with TCG\n",
		"wait_ssh: done, running\n  = accel = \"auto\": KVM did not work (paused (internal error)), TCG does\n",
	} {
		if !strings.Contains(named(got), want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
	wantText(t, "calls", "destroy lab.dev\ndefine lab.dev\nstart lab.dev on qemu\ndefine lab.dev\n", l.calls())
	if got := l.object(auto).Attrs.GetAttr("ssh_port"); !got.RawEquals(cty.NumberIntVal(int64(good))) {
		t.Errorf("ssh_port %#v", got)
	}
}

func TestWaitSSHDoesNotFallBackFromWhatWasAskedFor(t *testing.T) {
	kvm := vm(map[string]cty.Value{"accel": cty.StringVal("kvm")})
	l := bootedOn(t, "kvm", func(s *sshtest.Server) { s.Authorized = nil })
	l.apply(l.change(providers.Start, kvm))
	l.meanwhile(func(d *libvirt.FakeDomain) { d.Power = libvirt.FakeInternalError })
	l.Calls = nil
	got := l.waitFor(t.Context(), kvm)
	if !strings.Contains(got, "wait_ssh: failed guest_stopped: wait for SSH of vm.dev: the guest is paused (internal error)\n") {
		t.Errorf("got\n%s", got)
	}
	if len(l.Calls) > 0 {
		t.Errorf("calls %v", l.Calls)
	}
}

func TestWaitSSHOfARemoteHost(t *testing.T) {
	l := newLab(t)
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu+ssh://host/system"), "pool": null})
	l.open()
	c := create(vm(nil))
	c.Policy = policy(map[string]cty.Value{
		"ssh": cty.ObjectVal(map[string]cty.Value{"wait": cty.True, "wait_timeout": cty.NumberIntVal(300)}),
	})
	got := l.apply(c)
	_, got, _ = strings.Cut(got, "start: done, running\n")
	wantText(t, "what was said", `
wait_ssh: failed remote_ssh: wait for SSH of vm.dev: it listens on 127.0.0.1 of the host host, which this build does not reach
  next: write ssh { wait = false } into vm.dev
`, got)
}
