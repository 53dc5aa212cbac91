//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"vmctl/providers"
	"vmctl/providers/providertest"
)

// The inside of a real VM is a guest like any other: over a real SSH server, through QEMU's user
// network, and gone with a power cut.
func TestGuest(t *testing.T) {
	t.Parallel()
	v := newHouse(t, "inside").vm("dev")
	v.must(created, providers.Create)
	v.run("sh", "-c", `setsid nc -ll -p 7007 -e cat </dev/null >/dev/null 2>&1 &
		until netstat -ltn | grep -q :7007; do usleep 10000; done`)
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		g := v.enter(*v.object(), cty.ObjectVal(v.want))
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return providertest.GuestScene{
			Guest: g, Slow: true, NoUnix: true, // Dropbear forwards none
			Listen: func(*testing.T, string) string { return "127.0.0.1:7007" },
			Lose:   func(*testing.T) { v.virsh("destroy", v.name) },
		}
	})
	v.must("delete done", providers.Destroy)
	v.nothing()
}
