//go:build linux

package engine_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// website is a spec with a server that is healthy only a while after its start, and a client that asks it once.
const website = `vmctl {
  project = "demo"
  id      = "k7m2qd9x4r"
}

engine "here" {
  host = "unix://SOCKET"
}

image "box" {
  engine  = engine.here
  ref     = "demo/box:1"
  archive = "box.tar"
}

network "back" {
  engine = engine.here
  labels = { team = "one" }
}

container "web" {
  engine  = engine.here
  image   = image.box
  command = ["sh", "-c", "trap 'exit 0' TERM; mkdir /www; echo hello >/www/index.html; sleep 1; httpd -p 80 -h /www; touch /up; while :; do sleep 1; done"]
  restart = "no"

  port {
    container = 80
    host      = PORT
  }

  network {
    network = network.back
    aliases = ["www"]
  }

  healthcheck {
    command  = ["test", "-e", "/up"]
    interval = "1s"
    retries  = 60
  }

  stop {
    grace = "10s"
  }
}

container "client" {
  engine     = engine.here
  image      = image.box
  command    = ["sh", "-c", "trap 'exit 0' TERM; wget -O /got http://www/ || exit 1; cat /got; while :; do sleep 1; done"]
  depends_on = [container.web]

  network {
    network = network.back
  }
}
`

// A container is reached by its alias in a network and by its port on this host. Who depends on it waits until it
// is healthy. Edits apply live where the engine can, and replace it elsewhere.
//
// row E55, of a port of this host
func TestNetwork(t *testing.T) {
	d := sharedDaemon(t)
	p := projectOf(t, d, website)
	first, second := strconv.Itoa(d.port(0)), strconv.Itoa(d.port(1))
	p.edit("PORT", first)
	p.applies()
	if got := p.get("127.0.0.1", first); got != "hello\n" {
		t.Errorf("its port answers %q", got)
	}
	if got := d.must("GET", "/containers/demo.client/logs?stdout=1&stderr=1", ""); !strings.Contains(got, "hello") {
		t.Errorf("the client wrote %q", got)
	}

	before := p.container()
	p.edit(`"no"`, `"always"`, `"10s"`, `"20s"`)
	p.applies()
	if now := p.container(); now.ID != before.ID || now.HostConfig.RestartPolicy.Name != "always" {
		t.Errorf("after another restart policy it is %+v", now)
	}

	p.edit("PORT", second, `"www"]`, `"www", "site"]`)
	p.applies()
	if now := p.container(); now.ID == before.ID {
		t.Error("another port and another alias left the container as it was")
	}
	if got := p.get("127.0.0.1", second); got != "hello\n" {
		t.Errorf("its other port answers %q", got)
	}

	network := read[struct{ ID string }](d, "/networks/demo.back").ID
	p.edit(`"one"`, `"two"`)
	p.applies()
	if now := read[struct{ ID string }](d, "/networks/demo.back").ID; now == network {
		t.Error("other labels left the network as it was")
	}

	p.run(0, "destroy", "--auto-approve")
	for _, n := range listed[struct{ Name string }](d, "/networks") {
		if strings.HasPrefix(n.Name, "demo") {
			t.Errorf("network %s is left", n.Name)
		}
	}
}

// A container answers at each address of this host at which it publishes its port, of both families. In which order blocks name
// them, and the engine shows them, is no difference; nor is the order of its mounts.
//
// row E55
func TestPortsOfBothFamilies(t *testing.T) {
	d := sharedDaemon(t)
	const one = "  port {\n    container = 80\n    host      = PORT\n  }\n"
	four, any4 := one, strings.Replace(one, "PORT\n", "OTHER\n    host_ip   = \"0.0.0.0\"\n", 1)
	six, any6 := strings.Replace(one, "PORT\n", "PORT\n    host_ip   = \"::1\"\n", 1), strings.Replace(any4, "0.0.0.0", "::", 1)
	website, _, _ := strings.Cut(website, "container \"client\"")
	const volumes = "\nvolume \"a\" {\n  engine = engine.here\n}\n\nvolume \"b\" {\n  engine = engine.here\n}\n"
	a := "  mount {\n    volume = volume.a\n    target = \"/a\"\n  }\n"
	b := strings.NewReplacer(".a", ".b", "/a", "/b").Replace(a)
	p := projectOf(t, d, strings.Replace(website, one, "PUBLISHED", 1)+volumes)
	port, other := strconv.Itoa(d.port(4)), strconv.Itoa(d.port(5))
	var made string
	for i, order := range [][]string{{four, six, any4, any6, a, b}, {six, four, any6, any4, b, a}, {b, any6, six, a, any4, four}, {any4, any6, four, six, b, a}} {
		p.edit("PUBLISHED", strings.NewReplacer("PORT", port, "OTHER", other).Replace(strings.Join(order, "\n")))
		if i == 0 {
			p.run(0, "apply", "--auto-approve")
			made = p.container().ID
		}
		for range 2 {
			if out := p.run(0, "plan", "--detailed-exitcode"); !strings.Contains(out, "No changes") {
				t.Errorf("in order %d the plan says\n%s", i, out)
			}
		}
		p.run(0, "apply", "--auto-approve")
		if now := p.container().ID; now != made {
			t.Errorf("in order %d another container was made", i)
		}
	}
	for _, at := range [][2]string{{"127.0.0.1", port}, {"::1", port}, {"127.0.0.1", other}, {"::1", other}} {
		if got := p.get(at[0], at[1]); got != "hello\n" {
			t.Errorf("port %s of %s answers %q", at[1], at[0], got)
		}
	}

	// The engine itself shows them in an order of its own after a restart of the container.
	p.run(0, "container", "restart", "web")
	p.run(0, "plan", "--detailed-exitcode")

	// One address less is a difference.
	p.edit("PUBLISHED", strings.NewReplacer("PORT", port).Replace(four)+a+b)
	says(t, p.run(2, "plan", "--detailed-exitcode"), "container.web replace")
	p.applies()
	if got := p.get("127.0.0.1", port); got != "hello\n" {
		t.Errorf("the port that is left answers %q", got)
	}
	if c, err := net.Dial("tcp", net.JoinHostPort("::1", port)); err == nil {
		_ = c.Close() //nolint:errcheck // nothing was sent
		t.Error("a port that is no longer published is open")
	}
	p.run(0, "destroy", "--auto-approve")
}

// get asks a port of an address of this host.
func (p *project) get(ip, port string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, port)+"/", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() //nolint:errcheck // it was only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// Each state of a container is reached from each other one, and stays.
//
// row E39, of a real engine
func TestStates(t *testing.T) {
	d := sharedDaemon(t)
	p := projectOf(t, d, strings.Replace(quick, "  memory ", "  state   = STATE\n  memory ", 1))
	for _, state := range []string{"created", "paused", "running", "paused", "created", "running"} {
		p.edit("STATE", strconv.Quote(state))
		p.applies()
		if now := p.container().State.Status; now != state && (state != "created" || now != "exited") {
			t.Errorf("state = %q left it %s", state, now)
		}
	}
}
