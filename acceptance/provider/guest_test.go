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
	// Dropbear forwards no unix sockets: a relay in the guest does, each way.
	v.run("sh", "-c", `echo hello | setsid nc.openbsd -l -U /run/s.sock >/run/got 2>/dev/null &
		for i in $(seq 1000); do [ ! -S /run/s.sock ] || exit 0; usleep 10000; done; exit 1`)
	g := v.enter(*v.object(), cty.ObjectVal(v.want))
	conn, err := g.Dial(t.Context(), "unix", "/run/s.sock")
	if err != nil {
		t.Fatal(err)
	}
	hello := make([]byte, len("hello\n"))
	_, err = io.ReadFull(conn, hello)
	text := strings.Repeat("through a relay\n", 10_000)
	_, sent := io.WriteString(conn, text)
	err = errors.Join(err, sent, conn.(interface{ CloseWrite() error }).CloseWrite())
	rest, read := io.ReadAll(conn)
	if err = errors.Join(err, read, conn.Close()); err != nil || string(hello) != "hello\n" || len(rest) > 0 {
		t.Errorf("it got %q, and then %q: %v", hello, rest, err)
	}
	var got strings.Builder
	o, err := g.Run(t.Context(), providers.Command{Args: []string{"cat", "/run/got"}, Stdout: &got})
	if err = errors.Join(err, g.Close()); err != nil || o.Status != 0 || got.String() != text {
		t.Errorf("status %d, %v: %d bytes of %d have come", o.Status, err, got.Len(), len(text))
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
