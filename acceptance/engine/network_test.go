//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"io"
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
	if got := p.get(first); got != "hello\n" {
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
	if got := p.get(second); got != "hello\n" {
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

// get asks a port of this host.
func (p *project) get(port string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%s/", port), nil)
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
