package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/libvirt"
	"vmctl/spec"
)

// row L65
// row A59
func TestConnectErrors(t *testing.T) {
	var b strings.Builder
	for _, tc := range []struct{ uri, message string }{
		{"qemu:///session", "libvirt.so.0: cannot open shared object file: No such file or directory"},
		{"qemu:///session", "Failed to open libvirt.so.0"},
		{"qemu:///session", "Failed to find user record for uid '4242'"},
		{"qemu:///session", "Failed to connect socket to '/run/user/1000/libvirt/libvirt-sock': No such file or directory"},
		{"qemu:///session", "UNIX socket path '/very/long' too long"},
		{"qemu:///session", "no connection driver available for qemu:///session"},
		{"qemu:///system", "Failed to connect socket to '/var/run/libvirt/libvirt-sock': No such file or directory"},
		{"qemu:///system", "Failed to connect socket to '/var/run/libvirt/libvirt-sock': Permission denied"},
		{"qemu:///system", "authentication unavailable: no polkit agent available to authenticate action 'org.libvirt.unix.manage'"},
		{"qemu:///system", "internal error: Unable to get system bus connection: Could not connect: No such file or directory"},
		{"qemu:///system", "access denied by policy"},
		{"qemu+ssh://host/system", "Cannot recv data: ssh: Could not resolve hostname host"},
		{"qemu:///system", "something else"},
	} {
		l := newLab(t)
		l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal(tc.uri), "pool": null})
		l.open()
		l.Down = libvirt.ErrLibvirt(tc.message)
		inv, err := l.provider.Observe(t.Context(), providers.Query{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", inv.Partial[spec.VM])
		for _, next := range inv.Partial[spec.VM].Next {
			fmt.Fprintf(&b, "  next: %s\n", next.Text)
		}
		b.WriteByte('\n')
	}
	wantGolden(t, "connect.txt", b.String())
}

// The provider connects again to a daemon that was restarted. It does not close the dead connection, which other steps may
// be using.
func TestConnectAgain(t *testing.T) {
	l := made(t, vm(nil))
	l.Down = libvirt.ErrLibvirt("Failed to connect socket to '/x': Connection refused")
	if inv := l.observe(vm(nil)); inv.Partial[spec.VM] == nil || len(inv.Objects) > 0 {
		t.Errorf("a daemon that is down shows %+v", inv)
	}
	l.Down = nil
	if inv := l.observe(vm(nil)); inv.Partial[spec.VM] != nil || len(inv.Objects) != 1 {
		t.Errorf("a daemon that is up again shows %+v", inv)
	}
	if l.Closed != 0 {
		t.Errorf("a dead connection was closed %d times", l.Closed)
	}
	for range 2 {
		if err := l.provider.Close(); err != nil || l.Closed != 1 {
			t.Errorf("close: %v, closed %d times", err, l.Closed)
		}
	}
}
