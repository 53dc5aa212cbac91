//go:build linux

package acceptance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"vmctl/providers"
	room "vmctl/providers/guest"
	"vmctl/providers/providertest"
)

// echoServers is a program of the guest that serves both sockets: each connection gets back what it sends.
const echoServers = `use IO::Socket::INET; use IO::Socket::UNIX; use POSIX;
my @all = (IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 7007, Listen => 20, ReuseAddr => 1),
	IO::Socket::UNIX->new(Local => "/tmp/echo.sock", Listen => 20));
defined $_ or die $! for @all;
$SIG{CHLD} = "IGNORE";
for my $s (@all) {
	next if fork;
	POSIX::setsid();
	open STDIN, "</dev/null"; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null";
	while (my $c = $s->accept) {
		next if fork;
		while (sysread $c, my $b, 65536) { syswrite $c, $b }
		exit;
	}
}
`

// The inside of an instance of Lima is a guest like any other: over OpenSSH, with its user's login shell, and gone with QEMU. The client
// of this host talks to an engine in it.
//
// row E58, of an engine in a VM of Lima
func TestGuestOfLima(t *testing.T) {
	s := newCrashSite(t, operation{}, "a guest of Lima")
	s.write(on(limaGuest))
	s.must("apply", "--auto-approve")
	s.must("vm", "exec", "dev", "--", "sh", "-c", `sudo usermod -aG docker "$(id -un)" && sudo systemctl start docker`)
	s.write(on(limaGuest) + "engine \"here\" {\n  vm = vm.dev\n}\n")
	s.must("apply", "--auto-approve")
	s.must("plan", "--detailed-exitcode")
	if out := s.must("engine", "exec", "here", "--", "docker", "info", "--format", "{{.OSType}} {{.Containers}}"); out != "linux 0\n" {
		t.Errorf("docker info in the instance says %q", out)
	}
	s.write(on(limaGuest))
	s.must("apply", "--auto-approve")
	var login struct {
		Address      string `json:"address"`
		Port         int    `json:"port"`
		User         string `json:"user"`
		IdentityFile string `json:"identity_file"`
		KnownHosts   string `json:"known_hosts"`
		HostKeyAlias string `json:"host_key_alias"`
	}
	if err := json.Unmarshal([]byte(s.must("vm", "ssh-config", "--json", "dev")), &login); err != nil {
		t.Fatal(err)
	}
	enter := func(t *testing.T) providers.Guest {
		g := room.OverSSH(room.Target(providers.Login{
			Address: login.Address, Port: login.Port, User: login.User, IdentityFile: login.IdentityFile, KnownHosts: login.KnownHosts, Alias: login.HostKeyAlias,
		}), room.Keepalive{})
		t.Cleanup(func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	if o, err := enter(t).Run(t.Context(), providers.Command{Args: []string{"perl", "-e", echoServers}}); err != nil || o.Status != 0 {
		t.Fatalf("start servers: status %d, %v: %s", o.Status, err, o.Stderr)
	}
	providertest.Guests(t, func(t *testing.T) providertest.GuestScene {
		return providertest.GuestScene{
			Guest: enter(t), Slow: true,
			Listen: func(_ *testing.T, network string) string {
				return map[string]string{"tcp": "127.0.0.1:7007", "unix": "/tmp/echo.sock"}[network]
			},
			Lose: func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(s.data, "lima-here", "demo.dev", "qemu.pid"))
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
				if err == nil {
					err = syscall.Kill(pid, syscall.SIGKILL)
				}
				if err != nil {
					t.Error(err)
				}
			},
		}
	})
}
