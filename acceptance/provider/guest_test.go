//go:build cgo && libvirt_dlopen && linux

package provider_test

import (
	"errors"
	"io"
	"strings"
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
	// Dropbear forwards no unix sockets: a relay in the guest does, each way. One server keeps what it gets, another one sends that.
	v.run("sh", "-c", `setsid nc.openbsd -l -U /run/in.sock </dev/null >/run/got 2>/dev/null &
		for i in $(seq 1000); do [ ! -S /run/in.sock ] || exit 0; usleep 10000; done; exit 1`)
	g := v.enter(*v.object(), cty.ObjectVal(v.want))
	text := strings.Repeat("through a relay\n", 10_000)
	conn, err := g.Dial(t.Context(), "unix", "/run/in.sock")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(conn, text)
	err = errors.Join(err, conn.(interface{ CloseWrite() error }).CloseWrite())
	if end, read := io.ReadAll(conn); errors.Join(err, read, conn.Close()) != nil || len(end) > 0 {
		t.Errorf("sent %d bytes: %v; read %q, %v", len(text), err, end, read)
	}
	v.run("sh", "-c", `setsid nc.openbsd -N -l -U /run/out.sock </run/got >/dev/null 2>&1 &
		for i in $(seq 1000); do [ ! -S /run/out.sock ] || exit 0; usleep 10000; done; exit 1`)
	if conn, err = g.Dial(t.Context(), "unix", "/run/out.sock"); err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(conn)
	if err = errors.Join(err, conn.Close(), g.Close()); err != nil || string(back) != text {
		t.Errorf("of %d bytes came back %d: %v", len(text), len(back), err)
	}

	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		g := v.enter(*v.object(), cty.ObjectVal(v.want))
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return providertest.GuestScene{
			Guest: g, Slow: true, TCPOnly: true,
			Listen: func(*testing.T, string) string { return "127.0.0.1:7007" },
			Lose:   func(*testing.T) { v.virsh("destroy", v.name) },
		}
	})
	v.must("delete done", providers.Destroy)
	v.nothing()
}
