//go:build linux

package engine_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// shared is the dockerd of all tests that neither end nor restart it. Its containers have networks and ports.
var shared *daemon

// sharedDaemon returns the dockerd of several tests, for one test after the other. What a test leaves is removed.
func sharedDaemon(t *testing.T) *daemon {
	t.Helper()
	if shared == nil {
		dir, err := os.MkdirTemp("/tmp", "e") //nolint:usetesting // the path of a test's folder is too long for sockets
		if err != nil {
			t.Fatal(err)
		}
		shared = &daemon{t: t, dir: dir}
		if shared.net, err = newBridge(); err != nil {
			t.Fatal(err)
		}
		shared.start()
	}
	shared.t = t
	t.Cleanup(func() { shared.empty() })
	return shared
}

// endShared ends the shared dockerd and removes all that it made.
func endShared() error {
	if shared == nil {
		return nil
	}
	var err error
	if shared.cmd != nil {
		if err = shared.cmd.Process.Signal(syscall.SIGTERM); err == nil {
			err = shared.cmd.Wait()
		}
	}
	return errors.Join(err, shared.net.remove(), os.RemoveAll(shared.dir))
}

// bridge is a network of this host for the containers of one dockerd. Its name is the lock on its addresses and ports.
type bridge struct{ number int }

func newBridge() (*bridge, error) {
	var last error
	for b := (bridge{}); b.number < 200; b.number++ {
		if last = ip("link", "add", b.name(), "type", "bridge"); last != nil { // another test may have it
			continue
		}
		return &b, errors.Join(ip("addr", "add", fmt.Sprintf("10.213.%d.1/24", b.number), "dev", b.name()), ip("link", "set", b.name(), "up"))
	}
	return nil, fmt.Errorf("make a bridge: %w", last)
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (b *bridge) name() string { return fmt.Sprintf("vmctl-e%d", b.number) }

func (b *bridge) remove() error {
	if b == nil {
		return nil
	}
	return ip("link", "delete", b.name())
}

// flags returns dockerd's flags for the networks of its containers. The host's firewall stays as it is.
func (b *bridge) flags() []string {
	if b == nil {
		return []string{"--bridge=none"}
	}
	return []string{
		"--bridge", b.name(), "--ip-forward=false", "--ip-masq=false",
		"--default-address-pool", fmt.Sprintf("base=10.214.%d.0/24,size=28", b.number),
	}
}

// port returns a port of this host that no other test has.
func (d *daemon) port(i int) int { return 20000 + 10*d.net.number + i }

// empty removes whatever is in the engine.
func (d *daemon) empty() {
	for _, c := range listed[struct{ ID string }](d, "/containers/json?all=1") {
		d.must("DELETE", "/containers/"+c.ID+"?force=1&v=1", "")
	}
	for _, n := range listed[struct{ ID, Name string }](d, "/networks") {
		if n.Name != "bridge" && n.Name != "host" && n.Name != "none" {
			d.must("DELETE", "/networks/"+n.ID, "")
		}
	}
	for _, i := range listed[struct{ ID string }](d, "/images/json") {
		d.must("DELETE", "/images/"+i.ID+"?force=1", "")
	}
	d.must("POST", "/volumes/prune", "")
}
