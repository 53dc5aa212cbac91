//go:build linux

package engine_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The engine is killed in the middle of a load, of a create and of a listing. Nothing is forgotten or removed because of that, and
// one apply goes on once the engine is back.
func TestEngineKilled(t *testing.T) {
	d := newDaemon(t)
	p, x := throughProxy(t, d)
	p.run(0, "apply", "--auto-approve", "--target=volume.data") // an engine that ends while it makes a volume keeps that without its labels
	x.arm("/images/load", begun, d.strike)
	p.engineKilled("apply", "--auto-approve")
	p.run(0, "apply", "--auto-approve", "--target=image.box", "--target=volume.data")

	x.arm("/containers/create?", begun, d.strike)
	p.engineKilled("apply", "--auto-approve")
	p.applies()
	made := p.container()

	for _, listing := range []string{"/images/json", "/volumes", "/networks", "/containers/json", "/containers/" + made.ID} {
		x.arm("GET /v1.41"+listing, begun, d.strike)
		out := p.engineKilled("apply", "--auto-approve")
		if strings.Contains(out, " create") || strings.Contains(out, " forget") || strings.Contains(out, " destroy") || strings.Contains(out, " replace") {
			t.Errorf("with an engine that ended in the middle of %s the plan has a change:\n%s", listing, out)
		}
		p.applies()
		if now := p.container(); now.ID != made.ID || now.State.Status != "running" {
			t.Errorf("after an end in the middle of %s it is %+v, and was %+v", listing, now, made)
		}
	}
	p.run(0, "destroy", "--auto-approve")
	if got := p.names(); len(got) > 0 {
		t.Errorf("destroy left %q", got)
	}
}

// strike begins the end of the engine.
func (d *daemon) strike() { _ = d.cmd.Process.Kill() } //nolint:errcheck // engineKilled tells

// engineKilled runs vmctl while a strike ends the engine, demands that it fails, and starts the engine again.
func (p *project) engineKilled(args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 1 {
		p.t.Fatalf("vmctl %v ended with %v while the engine was killed:\n%s", args, err, out)
	}
	p.d.kill()
	p.d.start()
	return string(out)
}

// Two clients with records of their own make the same objects at the same time. Nothing is made twice, nothing that the other one
// made is lost, and both agree in the end.
func TestTwoClients(t *testing.T) {
	d := sharedDaemon(t)
	one := projectOf(t, d, quick)
	two := *one
	two.home = t.TempDir()
	one.run(0, "apply", "--auto-approve", "--target=image.box")
	two.run(0, "import", "--auto-approve", "image.box", "docker.io/demo/box:1")
	for round := range 3 {
		var all sync.WaitGroup
		said := make([]string, 2)
		for i, p := range []*project{one, &two} {
			all.Go(func() {
				out, err := p.command("apply", "--auto-approve", "--target=container.web").CombinedOutput()
				said[i] = fmt.Sprintf("%v\n%s", err, out)
			})
		}
		all.Wait()
		if got := strings.Join(one.names(), " "); got != "/demo.web" {
			t.Fatalf("round %d: there are %q; the clients say\n%s\n%s", round, got, said[0], said[1])
		}
		made := one.container()
		for _, p := range []*project{one, &two} {
			p.applies()
			if now := p.container(); now.ID != made.ID || now.State.Status != "running" {
				t.Errorf("round %d: it is %+v, and was %+v; the clients said\n%s\n%s", round, now, made, said[0], said[1])
			}
		}
		d.must("DELETE", "/containers/demo.web?force=1", "")
	}
	one.run(0, "destroy", "--auto-approve")
	two.run(0, "destroy", "--auto-approve")
	if got := slices.Concat(one.names(), d.ids()); len(got) > 0 {
		t.Errorf("the clients left %q", got)
	}
}
