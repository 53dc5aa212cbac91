package cli_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"vmctl/internal/sshx"
	"vmctl/internal/sshx/sshtest"
)

// lodged returns a house with a running VM, and a server that lets its user in.
func lodged(t *testing.T, server sshtest.Server) *house {
	t.Helper()
	h := newHouse(t, withID+small)
	keys := filepath.Join(h.data(), "keys", "demo.dev")
	line, err := sshx.EnsureKey(filepath.Join(keys, "id_ed25519"), "")
	if err != nil {
		t.Fatal(err)
	}
	if server.Authorized, _, _, _, err = ssh.ParseAuthorizedKey([]byte(line)); err != nil {
		t.Fatal(err)
	}
	server.HostKey = sshtest.NewKey(t)
	public := string(ssh.MarshalAuthorizedKey(server.HostKey.PublicKey()))
	if err := sshx.Pin(filepath.Join(keys, "known_hosts"), "demo.dev", public); err != nil {
		t.Fatal(err)
	}
	h.memory.port = server.Start(t)
	h.run("apply", "--auto-approve").exits(0)
	return h
}

// inhabited returns a house with a running VM that lets its user in.
func inhabited(t *testing.T) *house {
	t.Helper()
	return lodged(t, sshtest.Server{})
}

func TestExecPassesTheStatus(t *testing.T) {
	h := inhabited(t)
	script := `printf '%s|' "$@"; cat >&2; exit 7`
	h.stdin = strings.NewReader("from outside")
	h.run("vm", "exec", "dev", "--", "sh", "-c", script, "sh", "it's", "--json").exits(7).
		says("it's|--json|").warns("from outside").silent("Error")
	h.stdin = strings.NewReader("in")
	h.run("vm", "exec", "--json", "dev", "sh", "-c", script, "sh", "-la").exits(7).says(`"status": 7`, `"stdout": "-la|"`, `"stderr": "in"`)
	h.run("vm", "exec", "dev", "--", "no-such-program").exits(127)
}

// A command that may have run is not said to have failed, and its status is no command's.
func TestExecThatIsCutOff(t *testing.T) {
	var conn net.Conn
	h := lodged(t, sshtest.Server{Accept: func(c net.Conn) net.Conn {
		conn = c
		return c
	}})
	h.stdin = &asked{Reader: strings.NewReader(""), first: func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}}
	h.run("vm", "exec", "dev", "--", "sh", "-c", "cat; sleep 3600").exits(255).
		warns(`run "sh": it is unknown what it did: the connection was lost`, "see what it did before you run it again")
}

// row L46, of SSH: what runs and what answers are two things
func TestStatusAsksSSH(t *testing.T) {
	h := inhabited(t)
	h.run("status").exits(0).says("ssh.ready true")
	h.memory.machine("demo.dev").attrs["ssh_port"] = h.memory.machine("demo.dev").attrs["cpus"] // 1: nobody listens
	h.run("status").exits(0).says("vm.dev    running", "ssh.ready false: dial tcp 127.0.0.1:1: connect: connection refused")
	h.run("status", "--json").exits(0).says(`"type": "vm.running",
          "status": "true"`, `"type": "ssh.ready",
          "status": "false"`)
}

// row A47: a guest that shows another key is not let in
func TestAnotherHostKey(t *testing.T) {
	h := inhabited(t)
	other := ssh.MarshalAuthorizedKey(sshtest.NewKey(t).PublicKey())
	if err := sshx.Pin(filepath.Join(h.data(), "keys", "demo.dev", "known_hosts"), "demo.dev", string(other)); err != nil {
		t.Fatal(err)
	}
	h.run("vm", "exec", "dev", "true").exits(255).warns("demo.dev shows the host key", "which", "pins")
	h.run("status").exits(0).says("ssh.ready false: demo.dev shows the host key")
}
