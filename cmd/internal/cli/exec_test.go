package cli_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
)

// guest is an SSH server on the loopback that accepts one key. A command repeats itself on
// standard output, copies its standard input to standard error, and ends with status 7.
type guest struct {
	config  *ssh.ServerConfig
	hostKey string // authorized_keys line
	port    int
	wait    sync.WaitGroup
}

func newGuest(t *testing.T, authorized string) *guest {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{hostKey: string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}
	g.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !strings.HasPrefix(authorized, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))) {
			return nil, fmt.Errorf("an unknown key")
		}
		return nil, nil
	}}
	g.config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.port = listener.Addr().(*net.TCPAddr).Port
	g.wait.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			g.wait.Go(func() {
				if err := g.serve(conn); err != nil {
					return // as every client does in the end
				}
			})
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		g.wait.Wait()
	})
	return g
}

// serve serves one connection. An error means that the client has gone.
func (g *guest) serve(conn net.Conn) (err error) {
	server, channels, requests, err := ssh.NewServerConn(conn, g.config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	g.wait.Go(func() { ssh.DiscardRequests(requests) })
	for c := range channels {
		channel, requests, err := c.Accept()
		if err != nil {
			return err
		}
		for r := range requests {
			if err := r.Reply(true, nil); err != nil {
				return err
			}
			if r.Type == "exec" {
				if err := run(channel, r.Payload[4:]); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

func run(channel ssh.Channel, command []byte) error {
	_, said := channel.Write(command)
	_, copied := io.Copy(channel.Stderr(), channel)
	_, ended := channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{7}))
	return errors.Join(said, copied, ended, channel.Close())
}

// inhabited returns a house with a running VM, and a guest that accepts the VM's key.
func inhabited(t *testing.T) *house {
	t.Helper()
	h := newHouse(t, withID+small)
	keys := filepath.Join(h.data(), "keys", "demo.dev")
	authorized, err := sshx.EnsureKey(filepath.Join(keys, "id_ed25519"), "")
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, authorized)
	if err := sshx.Pin(filepath.Join(keys, "known_hosts"), "demo.dev", g.hostKey); err != nil {
		t.Fatal(err)
	}
	h.memory.port = g.port
	h.run("apply", "--auto-approve").exits(0)
	return h
}

func TestExecPassesTheStatus(t *testing.T) {
	h := inhabited(t)
	h.stdin = strings.NewReader("from outside")
	h.run("vm", "exec", "dev", "--", "sh", "-c", "it's", "--json").exits(7).
		says(`sh -c 'it'\''s' --json`).warns("from outside").silent("Error")
	h.stdin = strings.NewReader("in")
	h.run("vm", "exec", "--json", "dev", "ls", "-la").exits(7).says(`"status": 7`, `"stdout": "ls -la"`, `"stderr": "in"`)
}

// row L46, of SSH: what runs and what answers are two things
func TestStatusAsksSSH(t *testing.T) {
	h := inhabited(t)
	h.run("status").exits(0).says("ssh.ready true")
	h.memory.machine("demo.dev").attrs["ssh_port"] = h.memory.machine("demo.dev").attrs["cpus"] // 1: nobody listens
	h.run("status").exits(0).says("vm.dev    running", "ssh.ready false: dial tcp 127.0.0.1:1: connect: connection refused")
	h.run("status", "--json").exits(0).says(`"name": "vm.running",
          "status": "true"`, `"name": "ssh.ready",
          "status": "false"`)
}

// row A47: a guest that shows another key is not let in
func TestAnotherHostKey(t *testing.T) {
	h := inhabited(t)
	other := newGuest(t, "")
	if err := sshx.Pin(filepath.Join(h.data(), "keys", "demo.dev", "known_hosts"), "demo.dev", other.hostKey); err != nil {
		t.Fatal(err)
	}
	h.run("vm", "exec", "dev", "true").exits(255).warns("demo.dev shows the host key", "which", "pins")
	h.run("status").exits(0).says("ssh.ready false: demo.dev shows the host key")
}
