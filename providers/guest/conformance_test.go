//go:build unix

package guest_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/guest"
	"vmctl/providers/providertest"
)

// server is a guest over SSH, with the server that it connects to.
type server struct {
	home   string
	target sshx.Target

	mu    sync.Mutex
	conns []net.Conn // in the order in which they came
}

// connections returns how many connections the server has accepted.
func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// cut ends all connections, as the end of a VM does.
func (s *server) cut(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close() //nolint:errcheck // it may be closed
	}
	if len(s.conns) == 0 {
		t.Error("nobody has connected")
	}
}

// serve starts a server that lets its user in.
func serve(t testing.TB, with sshtest.Server) *server {
	t.Helper()
	s := &server{home: t.TempDir()}
	keys := t.TempDir()
	identity := filepath.Join(keys, "id_ed25519")
	line, err := sshx.EnsureKey(identity, "me")
	if err != nil {
		t.Fatal(err)
	}
	if with.Authorized, _, _, _, err = ssh.ParseAuthorizedKey([]byte(line)); err != nil {
		t.Fatal(err)
	}
	with.Home, with.HostKey = s.home, sshtest.NewKey(t)
	accept := with.Accept
	with.Accept = func(c net.Conn) net.Conn {
		if accept != nil {
			c = accept(c)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, c)
		return c
	}
	s.target = guest.Target(providers.Login{
		Address: "127.0.0.1", Port: with.Start(t), User: "root", IdentityFile: identity, Alias: "dev",
		HostKey: string(ssh.MarshalAuthorizedKey(with.HostKey.PublicKey())), HostKeyFrom: "the test",
	})
	return s
}

func (s *server) enter(t testing.TB, k guest.Keepalive) providers.Guest {
	g := guest.OverSSH(s.target, k)
	closeAfter(t, g)
	return g
}

// closeAfter closes something at the end of the test.
func closeAfter(t testing.TB, c io.Closer) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOverSSH(t *testing.T) {
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		s := serve(t, sshtest.Server{MaxSessions: 10})
		return providertest.GuestScene{
			Guest: s.enter(t, guest.Keepalive{}), Lose: s.cut, Returns: true, Listen: listenIn(s.home),
		}
	})
}

// A server that forwards nothing: the sockets inside are reached by a relay.
func TestOverSSHWithoutForwarding(t *testing.T) {
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		s := serve(t, sshtest.Server{MaxSessions: 10, NoForwarding: ssh.Prohibited})
		return providertest.GuestScene{
			Guest: s.enter(t, guest.Keepalive{}), Lose: s.cut, Returns: true, Listen: listenIn(s.home),
		}
	})
}

// listenIn returns how to start echo servers, whose unix sockets are in a folder.
func listenIn(folder string) func(*testing.T, string) string {
	return func(t *testing.T, network string) string {
		t.Helper()
		if network == "tcp" {
			return providertest.Echo(t, network, "")
		}
		providertest.Echo(t, network, filepath.Join(folder, "echo.sock"))
		return "echo.sock"
	}
}

func TestOnHost(t *testing.T) {
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		home := t.TempDir()
		g := guest.OnHost(home, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home})
		closeAfter(t, g)
		return providertest.GuestScene{Guest: g, Listen: listenIn(home)}
	})
}

func TestInFolder(t *testing.T) {
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		folder := t.TempDir()
		g := guest.InFolder(folder, []string{"PATH=" + os.Getenv("PATH")})
		closeAfter(t, g)
		return providertest.GuestScene{
			Guest: g, Listen: listenIn(folder),
			Lose: func(*testing.T) { g.End(errOff) },
		}
	})
}
