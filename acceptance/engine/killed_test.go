//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// quick is main with a container that ends at once when it is asked to.
var quick = strings.Replace(main, "while :; do sleep 1; done", "sleep 1000 & wait", 1)

// throughProxy returns a project whose engine is behind a proxy.
func throughProxy(t *testing.T, d *daemon) (*project, *proxy) {
	x := newProxy(t, d)
	p := &project{t: t, d: d, main: strings.Replace(quick, "SOCKET", x.path, 1), dir: t.TempDir(), home: t.TempDir()}
	p.archive("one")
	p.edit()
	return p, x
}

// runKilled runs an apply that is killed once the engine has answered a request, before it sees the answer.
func (p *project) runKilled(x *proxy, request string) {
	p.t.Helper()
	p.struck(func(strike func()) { x.arm(request, answered, strike) }, "apply", "--auto-approve")
}

// struck runs a command that is killed by the strike of a proxy, which arm gets.
func (p *project) struck(arm func(strike func()), args ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, vmctl, args...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.home)
	arm(func() { _ = cmd.Process.Kill() }) //nolint:errcheck // its end tells
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Exited() {
		p.t.Fatalf("vmctl %v ended by itself (%v), without the request that it was to be killed at:\n%s", args, err, out)
	}
}

// vmctl is killed after each request of a replacement, before it can write down what came of it: one apply goes on.
//
// row E27, of containers that are replaced
func TestKilledInReplacement(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.applies()
	for i, request := range []string{"/kill?", "/rename?", "/containers/create?", "/start", "DELETE /"} {
		before := p.container()
		mode := fmt.Sprintf(`"mode-%d"`, i)
		p.edit(`"one"`, mode)
		p.runKilled(x, request)
		p.applies()
		now := p.container()
		if now.ID == before.ID || now.State.Status != "running" || !strings.Contains(strings.Join(now.Config.Env, " "), "MODE="+strings.Trim(mode, `"`)) {
			t.Errorf("killed after %s, it is %+v after one more apply, and was %+v", request, now, before)
		}
		if got := fmt.Sprint(p.names()); got != "[/demo.web]" {
			t.Errorf("killed after %s, there are %s after one more apply", request, got)
		}
	}
	p.run(0, "destroy", "--auto-approve")
}

// vmctl is killed before the engine gets the request for an object. If its block is gone by then, the record that was
// written for it goes, too, and the engine is asked to change nothing.
//
// row E37
func TestKilledBeforeItIsMade(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.run(0, "apply", "--auto-approve", "--target=image.box", "--target=volume.data")
	p.struck(func(strike func()) { x.arm("/containers/create?", early, strike) }, "apply", "--auto-approve")
	if out := p.run(0, "state", "list"); !strings.Contains(out, "container.web") {
		t.Fatalf("nothing was reserved: the records are\n%s", out)
	}
	p.main = p.main[:strings.Index(p.main, `container "web"`)]
	p.edit()
	x.changed()
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "forget container.web") && !strings.Contains(out, "container.web forget") {
		t.Errorf("the plan says\n%s", out)
	}
	p.applies()
	if out := p.run(0, "state", "list"); strings.Contains(out, "container.web") {
		t.Errorf("the records are\n%s", out)
	}
	if n := x.changed(); n > 0 {
		t.Errorf("the engine got %d requests that change something", n)
	}
	p.run(0, "destroy", "--auto-approve")
}

// vmctl is killed once the engine has made an image, a volume, a network or a container, before it sees the answer. Each is its own:
// the next apply goes on with it, and makes none twice.
//
// row E27, of what is made
func TestKilledWhileItIsMade(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.main = strings.Replace(p.main, `container "web" {`, `network "back" {
  engine = engine.here
}

container "web" {`, 1)
	for _, when := range []moment{answered, begun} {
		p.edit()
		for _, one := range [][2]string{
			{"/images/load", "image.box"}, {"/volumes/create", "volume.data"}, {"/networks/create", "network.back"}, {"/containers/create?", "container.web"},
		} {
			p.struck(func(strike func()) { x.arm(one[0], when, strike) }, "apply", "--auto-approve", "--target="+one[1])
			p.run(0, "apply", "--auto-approve", "--target="+one[1])
		}
		p.applies()
		p.run(0, "plan", "--detailed-exitcode")
		if got := fmt.Sprint(p.names()); got != "[/demo.web]" {
			t.Errorf("there are %s", got)
		}
		p.run(0, "destroy", "--auto-approve")
		if got := d.ids(); len(got) > 0 {
			t.Errorf("destroy left %q", got)
		}
	}
}
