package libvirt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers/libvirt"
)

func TestURI(t *testing.T) {
	var b strings.Builder
	for _, uid := range []int{0, 1000} {
		for _, uri := range []string{
			"qemu:///session", "qemu:///system", "qemu+ssh://me@host/system", "qemu+unix:///session?socket=/x", "qemu:///system?socket=/x", "qemu+unix:///session", "qemu+tcp://:16509/system", "test:///default",
			"qemu:///embed?root=/x", "qemu://host/embed", "qemu+pigeon://host/system", "qemu:///", "qemu", "xen:///system", "", "://",
		} {
			remote, here, system, err := libvirt.PlaceOf(uri, uid)
			if err != nil {
				fmt.Fprintf(&b, "%d %s\n  %v\n", uid, uri, err)
				continue
			}
			fmt.Fprintf(&b, "%d %s: remote %q, here %v, system %v\n", uid, uri, remote, here, system)
		}
	}
	wantGolden(t, "uris.txt", b.String())
}

func TestResolve(t *testing.T) {
	attrs := func(uri, pool cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"uri": uri, "pool": pool})
	}
	text := cty.StringVal
	for _, tc := range []struct {
		uid         int
		given, want cty.Value
	}{
		{1000, attrs(null, null), attrs(text("qemu:///session"), null)},
		{0, attrs(null, null), attrs(text("qemu:///system"), null)},
		{0, attrs(text("qemu:///session"), text("p")), attrs(text("qemu:///session"), text("p"))},
	} {
		if got := libvirt.Type(libvirt.Host{UID: tc.uid}).Resolve(tc.given); !got.RawEquals(tc.want) {
			t.Errorf("uid %d: %#v becomes %#v, want %#v", tc.uid, tc.given, got, tc.want)
		}
	}
}

func TestOpenRefusesAURI(t *testing.T) {
	l := newLab(t)
	l.settings.Attrs = cty.ObjectVal(map[string]cty.Value{"uri": cty.StringVal("qemu:///embed"), "pool": null})
	_, err := libvirt.OpenFake(libvirt.Host{UID: 1000}, l.settings, l.Fake)
	wantText(t, "error", `provider.libvirt.here: uri = "qemu:///embed" is refused: merely looking through the embedded driver can end processes `+
		`that are not its own, after a reboot or a copied folder; use "qemu:///session", which needs no system service either`, fmt.Sprint(err))
}
