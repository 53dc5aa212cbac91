//go:build linux

package network_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// project is a folder with a spec.
type project struct {
	t   *testing.T
	dir string
}

const main = `provider "libvirt" "here" {
  uri = "qemu:///system"
}

network "lan" {
  provider = provider.libvirt.here
  cidr     = "10.77.0.0/24"
}

vm "web" {
  for_each = toset(["a", "b"])
  provider = provider.libvirt.here
  cpus     = 1
  memory   = "256MiB"
  accel    = "tcg"

  boot {
    kernel  = "guest/vmlinuz"
    initrd  = "guest/initrd.gz"
    cmdline = "console=ttyS0 quiet no_timer_check"
  }
  network_interface {
    network = network.lan
    address = "auto"
  }
  ssh {
    wait_timeout = "30m"
  }
  start {
    timeout = "30m"
  }
}

output "a" {
  value = vm.web["a"].address
}

output "b" {
  value = vm.web["b"].address
}
`

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	guest, err := filepath.Abs(os.Getenv(guestVar))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(guest, filepath.Join(p.dir, "guest")); err != nil {
		t.Fatal(err)
	}
	p.write(main)
	p.exits(0, "init", "--project", "demo")
	t.Cleanup(func() {
		if t.Failed() { // the next test begins without what this one left
			p.output(program, "destroy", "--auto-approve")
		}
	})
	return p
}

func (p *project) write(spec string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "main.vmctl.hcl"), []byte(spec), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// output runs a program in the project's folder, and returns what it printed, and its exit code.
func (p *project) output(name string, args ...string) (text string, code int) {
	p.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// exits runs vmctl, and demands an exit code.
func (p *project) exits(want int, args ...string) string {
	p.t.Helper()
	out, code := p.output(program, args...)
	if code != want {
		p.t.Fatalf("vmctl %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out)
	}
	return out
}

// does runs another program, which must succeed.
func (p *project) does(name string, args ...string) string {
	p.t.Helper()
	out, code := p.output(name, args...)
	if code != 0 {
		p.t.Fatalf("%s %s: exit code %d\n%s", name, strings.Join(args, " "), code, out)
	}
	return out
}

// patience limits the wait for a guest. It only separates a hang from slowness.
const patience = 15 * time.Minute

// await repeats a command in a guest until it succeeds.
func (p *project) await(vm string, command ...string) {
	p.t.Helper()
	args := append([]string{"vm", "exec", vm, "--"}, command...)
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		out, code := p.output(program, args...)
		if code == 0 {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s in %s, in vain:\n%s\n%s", strings.Join(command, " "), vm, out, p.does("virsh", "net-dhcp-leases", "demo.lan"))
		}
	}
}

// has demands that each VM knows itself by its address, and reaches the other one.
func (p *project) has(a, b string) {
	p.t.Helper()
	for name, want := range map[string]string{"a": a, "b": b} {
		if got := p.exits(0, "output", name, "--raw"); got != want {
			p.t.Fatalf("the address of %s is %s, want %s", name, got, want)
		}
	}
	for vm, own := range map[string][2]string{`vm.web["a"]`: {a, b}, `vm.web["b"]`: {b, a}} {
		p.await(vm, "sh", "-c", "ip -4 address show | grep -qF 'inet "+own[0]+"/24'")
		p.await(vm, "ping", "-c", "1", "-W", "2", own[1])
		p.await(vm, "ping", "-c", "1", "-W", "2", "10.77.0.1") // the host
	}
}

// Two guests reach each other by addresses that vmctl gave away and libvirt's DHCP server told them. An edit keeps them, others'
// addresses are given to nobody, and a network with a domain of somebody else stays.
//
// row A11, of libvirt
func TestNetworkOfGuests(t *testing.T) {
	p := newProject(t)
	p.exits(0, "apply", "--auto-approve")
	p.has("10.77.0.2", "10.77.0.3")
	p.exits(0, "plan", "--detailed-exitcode")

	p.write(strings.Replace(main, "256MiB", "288MiB", 1))
	p.exits(0, "apply", "--auto-approve")
	p.has("10.77.0.2", "10.77.0.3")

	p.does("virsh", "net-update", "demo.lan", "add", "ip-dhcp-host", `<host mac="52:54:00:00:00:01" ip="10.77.0.4"/>`, "--live", "--config")
	edited := strings.Replace(main, `"b"]`, `"b", "c"]`, 1)
	p.write(edited)
	if out := p.exits(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "10.77.0.5") || strings.Contains(out, `"10.77.0.4"`) {
		t.Errorf("the plan of a third VM:\n%s", out)
	}
	p.write(main)

	theirs := filepath.Join(p.dir, "theirs.xml")
	if err := os.WriteFile(theirs, []byte("<domain type='qemu'><name>theirs</name><memory unit='MiB'>32</memory><vcpu>1</vcpu><os><type>hvm</type></os>"+
		"<devices><interface type='network'><source network='demo.lan'/></interface></devices></domain>"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.does("virsh", "define", theirs)
	if out, code := p.output(program, "destroy", "--auto-approve"); code == 0 || !strings.Contains(out, "theirs") {
		t.Errorf("destroy with a domain of somebody else in the network: exit code %d\n%s", code, out)
	}
	p.does("virsh", "net-info", "demo.lan")
	p.does("virsh", "undefine", "theirs")

	p.exits(0, "destroy", "--auto-approve")
	for what, argv := range map[string][]string{
		"networks": {"virsh", "net-list", "--all", "--name"}, "domains": {"virsh", "list", "--all", "--name"},
		"bridges": {"ip", "-o", "link", "show", "type", "bridge"}, "taps": {"ip", "-o", "link", "show", "type", "tun"},
		"DHCP servers": {"sh", "-c", "grep -l dnsmasq /proc/[0-9]*/comm || true"},
	} {
		p.nothing(what, argv)
	}
}

// nothing waits until a program lists nothing: a DHCP server ends a moment after its network.
func (p *project) nothing(what string, argv []string) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out := strings.TrimSpace(p.does(argv[0], argv[1:]...))
		if out == "" {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("left of its %s:\n%s", what, out)
		}
	}
}

// A network that is in the way of the host's own gets another prefix, or says why it cannot start.
func TestNetworkInTheWay(t *testing.T) {
	p := newProject(t)
	p.does("ip", "link", "add", "uplink", "type", "bridge")
	p.does("ip", "address", "add", "10.77.0.200/24", "dev", "uplink")
	p.does("ip", "link", "set", "uplink", "up")
	defer p.does("ip", "link", "delete", "uplink")
	alone := regexp.MustCompile(`(?s)vm "web".*`).ReplaceAllString(main, "")
	p.write(alone)
	out, code := p.output(program, "apply", "--auto-approve")
	if code == 0 || !strings.Contains(out, "already in use by interface uplink") || !strings.Contains(out, "avoid_host_subnets = true") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if left := strings.TrimSpace(p.does("virsh", "net-list", "--all", "--name")); left != "" {
		t.Errorf("left: %s", left)
	}
	p.write(strings.Replace(alone, `"10.77.0.0/24"`, "\"10.77.0.0/24\"\n  avoid_host_subnets = true", 1))
	p.exits(0, "apply", "--auto-approve")
	if xml := p.does("virsh", "net-dumpxml", "demo.lan"); !strings.Contains(xml, "<ip address='10.77.1.1' prefix='24'>") {
		t.Errorf("the network:\n%s", xml)
	}
	p.exits(0, "plan", "--detailed-exitcode")
	for command, finding := range map[string]string{"net-destroy": "it is not active", "net-undefine": "undefined while it was active"} {
		p.does("virsh", command, "demo.lan")
		if out := p.exits(2, "plan", "--detailed-exitcode"); !strings.Contains(out, finding) {
			t.Errorf("the plan after %s:\n%s", command, out)
		}
		p.exits(0, "apply", "--auto-approve")
		p.exits(0, "plan", "--detailed-exitcode")
		if out := p.does("virsh", "net-info", "demo.lan"); !regexp.MustCompile(`(?s)Active: +yes.*Persistent: +yes.*Autostart: +yes`).MatchString(out) {
			t.Errorf("after %s and an apply:\n%s", command, out)
		}
	}
	p.exits(0, "destroy", "--auto-approve")
}
