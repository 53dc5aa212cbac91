//go:build unix

package guest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"pgregory.net/rapid"

	"vmctl/internal/sshx/sshtest"
	"vmctl/providers"
	"vmctl/providers/guest"
)

// withPrograms serves a guest that forwards no sockets, and in which there are these programs and what a shell needs.
func withPrograms(t *testing.T, with sshtest.Server, programs ...string) *server {
	t.Helper()
	dir := t.TempDir()
	for _, program := range append([]string{"sh", "grep", "pwd"}, programs...) {
		path := "/usr/bin/" + program // python3 of the system needs none of its user's settings
		if _, err := os.Stat(path); err != nil {
			if path, err = exec.LookPath(program); err != nil {
				t.Fatalf("scripts/deps.sh test installs it: %v", err)
			}
		}
		if err := os.Symlink(path, filepath.Join(dir, program)); err != nil {
			t.Fatal(err)
		}
	}
	if with.NoForwarding == 0 {
		with.NoForwarding = ssh.UnknownChannelType
	}
	with.Login = login(t, "PATH='"+dir+`'; export PATH; exec /bin/sh "$@"`)
	return serve(t, with)
}

// relays lists the programs that relay sockets.
var relays = []string{"python3", "perl", "nc.openbsd"}

// What is sent arrives, whatever its pieces are, and so does what comes back, after the end of what was sent, too.
func TestRelaysChangeNothing(t *testing.T) {
	for _, program := range relays {
		for _, network := range []string{"unix", "tcp"} {
			t.Run(program+" "+network, func(t *testing.T) {
				t.Parallel()
				s := withPrograms(t, sshtest.Server{}, program)
				g := s.enter(t, guest.Keepalive{})
				address := listenIn(s.home)(t, network)
				rapid.Check(t, func(r *rapid.T) {
					pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 1, 200_000), 0, 5).Draw(r, "pieces")
					if err := exchange(t, g, network, address, pieces); err != nil {
						r.Fatal(err)
					}
				})
				var wait sync.WaitGroup
				for i := range 20 {
					wait.Go(func() {
						if err := exchange(t, g, network, address, [][]byte{[]byte(strings.Repeat(fmt.Sprint(i), 10_000))}); err != nil {
							t.Error(err)
						}
					})
				}
				wait.Wait()
			})
		}
	}
}

// exchange sends pieces to an echo server inside, and compares what comes back.
func exchange(t *testing.T, g providers.Guest, network, address string, pieces [][]byte) error {
	conn, err := g.Dial(t.Context(), network, address)
	if err != nil {
		return err
	}
	var all []byte
	for _, piece := range pieces {
		all = append(all, piece...)
	}
	sent := make(chan error, 1)
	go func() {
		for _, piece := range pieces {
			if _, err := conn.Write(piece); err != nil {
				sent <- err
				return
			}
		}
		sent <- conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	back, err := io.ReadAll(conn)
	if err = errors.Join(err, <-sent, conn.Close()); err != nil || string(back) != string(all) {
		return fmt.Errorf("of %d bytes came back %d: %w", len(all), len(back), err)
	}
	return nil
}

// A server is asked once for each network whether it forwards.
func TestTheRelayIsRemembered(t *testing.T) {
	var asked atomic.Int64
	s := withPrograms(t, sshtest.Server{Forwarded: func() { asked.Add(1) }}, "perl")
	g := s.enter(t, guest.Keepalive{})
	address := listenIn(s.home)(t, "unix")
	for range 3 {
		if err := exchange(t, g, "unix", address, [][]byte{[]byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 || s.connections() != 1 {
		t.Errorf("the server was asked %d times on %d connections", n, s.connections())
	}
}

// What cannot be reached says why: in the guest, or because the guest has nothing that could.
func TestSocketsThatARelayCannotReach(t *testing.T) {
	refused := filepath.Join(t.TempDir(), "refused.sock")
	l, err := net.Listen("unix", refused)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "it's a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ program, network, address, want string }{
		{"python3", "unix", "/no/such.sock", "there is no such socket"},
		{"python3", "unix", file, "it is no socket"},
		{"python3", "unix", refused, "Connection refused"},
		{"python3", "tcp", "127.0.0.1:1", "Connection refused"},
		{"perl", "unix", refused, "Connection refused"},
		{"perl", "tcp", "127.0.0.1:1", "Connection refused"},
		{"perl", "tcp", "[::1]:1", "Connection refused"},
		{"env", "unix", refused, "install python3, perl or netcat-openbsd there"},
	} {
		g := withPrograms(t, sshtest.Server{}, test.program).enter(t, guest.Keepalive{})
		conn, err := g.Dial(t.Context(), test.network, test.address)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "connect to "+test.address+": ") {
			t.Errorf("%s, %s: %v, %v; want %s", test.program, test.address, conn, err, test.want)
		}
	}
}

// OpenSSH with its forwarding off says of a unix socket that the connection failed: a relay is tried. Of tcp that is the truth.
func TestAServerThatSaysThatTheConnectionFailed(t *testing.T) {
	s := withPrograms(t, sshtest.Server{NoForwarding: ssh.ConnectionFailed}, "python3")
	g := s.enter(t, guest.Keepalive{})
	if err := exchange(t, g, "unix", listenIn(s.home)(t, "unix"), [][]byte{[]byte("x")}); err != nil {
		t.Error(err)
	}
	if _, err := g.Dial(t.Context(), "unix", "/no/such.sock"); err == nil || !strings.Contains(err.Error(), "there is no such socket") {
		t.Errorf("a socket that is not there: %v", err)
	}
	if conn, err := g.Dial(t.Context(), "tcp", listenIn(s.home)(t, "tcp")); err == nil || !strings.Contains(err.Error(), "rejected: connect failed") {
		t.Errorf("tcp: %v, %v", conn, err)
	}
	bare := withPrograms(t, sshtest.Server{NoForwarding: ssh.ConnectionFailed}).enter(t, guest.Keepalive{})
	if _, err := bare.Dial(t.Context(), "unix", filepath.Join(s.home, "echo.sock")); err == nil || !strings.Contains(err.Error(), "rejected: connect failed") {
		t.Errorf("without a relay: %v", err)
	}
}

// nc has nothing to say before it has connected: that it could not is what the first read says.
func TestNetcatThatCannotConnect(t *testing.T) {
	g := withPrograms(t, sshtest.Server{NoForwarding: ssh.Prohibited}, "nc.openbsd").enter(t, guest.Keepalive{})
	conn, err := g.Dial(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("its first read: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// The end of a relay that was killed is an error, and not the end of what the socket sends; so is the end of its guest.
func TestTheEndOfARelay(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *server, g providers.Guest){
		"it is killed": func(t *testing.T, _ *server, g providers.Guest) {
			o, err := g.Run(t.Context(), providers.Command{Args: []string{"sh", "-c", "kill -9 $(cat pid)"}})
			if err != nil || o.Status != 0 {
				t.Errorf("status %d, %v, %s", o.Status, err, o.Stderr)
			}
		},
		"the connection is lost": func(t *testing.T, s *server, _ providers.Guest) { s.cut(t) },
		"the guest is closed": func(t *testing.T, _ *server, g providers.Guest) {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := "#!/bin/sh\necho $$ >pid\nprintf '\\nsome'\nexec sleep 3600\n"
			bin := filepath.Join(t.TempDir(), "python3")
			if err := os.WriteFile(bin, []byte(fake), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			s := serve(t, sshtest.Server{NoForwarding: ssh.Prohibited, Login: login(t, "PATH='"+filepath.Dir(bin)+`':$PATH; export PATH; exec /bin/sh "$@"`)})
			g := guest.OverSSH(s.target, guest.Keepalive{})
			t.Cleanup(func() { _ = g.Close() }) //nolint:errcheck // it may be closed
			conn, err := g.Dial(t.Context(), "tcp", "127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			some := make([]byte, 4)
			if _, err := io.ReadFull(conn, some); err != nil || string(some) != "some" {
				t.Fatalf("%q, %v", some, err)
			}
			end(t, s, g)
			if n, err := conn.Read(some); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%d bytes, and then %v", n, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A connection that is closed ends its relay in the guest, also where the other side does not end it.
func TestAClosedConnectionEndsItsRelay(t *testing.T) {
	s := withPrograms(t, sshtest.Server{}, "perl")
	g := s.enter(t, guest.Keepalive{})
	path := filepath.Join(s.home, "mute.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, l)
	conn, err := g.Dial(t.Context(), "unix", "mute.sock")
	if err != nil {
		t.Fatal(err)
	}
	inside, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := inside.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(inside) // it ends with the relay's half, and what was sent before has come
	if err != nil || string(said) != "last words" {
		t.Errorf("%q, %v", said, err)
	}
	for { // until the relay has ended
		if _, err := inside.Write([]byte("x")); err != nil {
			break
		}
	}
	closeAfter(t, inside)
}
