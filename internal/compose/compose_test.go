package compose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"vmctl/internal/compose"
	"vmctl/internal/compose/composetest"
)

// The short and the long form of a setting mean the same.
func TestForms(t *testing.T) {
	const short = `
services:
  db: {image: db}
  web:
    image: box
    command: sh -c "echo 'a b'"
    environment: [A=1, B=x=y]
    labels: [team=one, bare]
    ports: ["80", "8080:80", "127.0.0.1:53:53/udp", "9000-9001:90-91", "[::1]:81:81"]
    volumes: ["data:/srv:ro", "/cache", "./here:/there"]
    networks: [front]
    depends_on: [db]
    healthcheck: {test: "wget x", interval: 90s}
    mem_limit: 64m
    cpus: "0.5"
networks: {front: {}}
volumes: {data: }
`
	const long = `
services:
  db: {image: db}
  web:
    image: box
    command: [sh, -c, "echo 'a b'"]
    environment: {A: 1, B: x=y}
    labels: {team: one, bare: }
    ports:
      - {target: 80}
      - {target: 80, published: "8080"}
      - {target: 53, published: 53, host_ip: 127.0.0.1, protocol: udp}
      - {target: 90-91, published: 9000-9001}
      - {target: 81, published: 81, host_ip: "::1"}
    volumes:
      - {type: volume, source: data, target: /srv, read_only: true}
      - {type: volume, target: /cache}
      - {type: bind, source: ./here, target: /there}
    networks: {front: }
    depends_on: {db: {condition: service_started}}
    healthcheck: {test: [CMD-SHELL, "wget x"], interval: 1m30s}
    deploy: {resources: {limits: {memory: 65536k, cpus: 0.5}}}
networks: {front: {}}
volumes: {data: {}}
`
	want := compose.Service{
		Name: "web", Image: "box", Command: []string{"sh", "-c", "echo 'a b'"}, Env: map[string]string{"A": "1", "B": "x=y"},
		Labels: map[string]string{"team": "one", "bare": ""}, Memory: 64 << 20, CPUs: "0.5",
		Ports: []compose.Port{
			{Container: 80, Host: 8080, HostIP: "0.0.0.0", Protocol: "tcp"},
			{Container: 53, Host: 53, HostIP: "127.0.0.1", Protocol: "udp"},
			{Container: 90, Host: 9000, HostIP: "0.0.0.0", Protocol: "tcp"},
			{Container: 91, Host: 9001, HostIP: "0.0.0.0", Protocol: "tcp"},
			{Container: 81, Host: 81, HostIP: "::1", Protocol: "tcp"},
		},
		Mounts: []compose.Mount{{Volume: "data", Target: "/srv", ReadOnly: true}}, Networks: []compose.Attachment{{Network: "front", Aliases: []string{"web"}}},
		DependsOn:   []string{"db"},
		Healthcheck: &compose.Healthcheck{Command: []string{"/bin/sh", "-c", "wget x"}, Interval: "1m30s"},
	}
	for name, text := range map[string]string{"short": short, "long": long} {
		p, err := compose.Read(text, inputs(nil, "", nil))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := p.Services[1]
		if left := settings(got.LeftOut); left != "ports[0] volumes[1] volumes[2]" {
			t.Errorf("%s: left out are %s", name, left)
		}
		got.LeftOut = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A service that names no network is in the default one, also where it says so by an empty setting.
func TestNoNetworks(t *testing.T) {
	for said, want := range map[string]string{
		"":                        "default",
		"networks: []":            "default",
		"networks: {}":            "default",
		"networks:":               "default",
		`network_mode: ""`:        "default",
		"network_mode:":           "default",
		"network_mode: host":      "",
		"network_mode: none":      "",
		"networks: [front]":       "front",
		"networks: {front: null}": "front",
	} {
		p, err := compose.Read("services:\n  web:\n    image: box\n    "+said+"\nnetworks: {front: {}}\n", inputs(nil, "", nil))
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		got := ""
		for _, a := range p.Services[0].Networks {
			got += a.Network
		}
		if got != want {
			t.Errorf("%q: it is in %q, want %q", said, got, want)
		}
	}
}

func settings(all []compose.LeftOut) string {
	var names []string
	for _, l := range all {
		names = append(names, l.Setting)
	}
	return strings.Join(names, " ")
}

// No setting is dropped: each is in a field, or left out by its name.
func TestNothingIsDropped(t *testing.T) {
	p, err := compose.Read(`
version: "3"
x-top: 1
secrets: {s: {file: s}}
services:
  web:
    image: box
    build: {context: .}
    privileged: true
    unheard: {of: 1}
    network_mode: host
    restart: on-failure:3
    deploy: {replicas: 2, resources: {reservations: {cpus: 1}, limits: {pids: 1}}}
    environment: [GONE]
    ports: [{target: 80, published: 80, mode: host}, "90-92:90", "1:1/sctp"]
    volumes: ["data:/a:z", {type: volume, source: data, target: /b, volume: {nocopy: true}}, {type: tmpfs, target: /c}]
    depends_on: {db: {condition: service_completed_successfully, restart: true}}
    healthcheck: {test: [CMD, x], start_interval: 1s}
  db:
    image: db
    healthcheck: {disable: true}
    networks: {default: {priority: 1}}
  quiet: {image: box, healthcheck: {interval: 1s}}
networks: {front: {ipam: {}, external: {name: theirs}}}
volumes: {data: {driver_opts: {a: b}}}
`, inputs(nil, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{settings(p.LeftOut)}
	for _, s := range p.Services {
		got = append(got, s.Name+": "+settings(s.LeftOut))
	}
	for _, n := range p.Networks {
		got = append(got, fmt.Sprintf("network %s %q %t: %s", n.Name, n.ObjectName, n.External, settings(n.LeftOut)))
	}
	got = append(got, "volume data: "+settings(p.Volumes[0].LeftOut))
	want := []string{
		"secrets version x-top",
		"db: networks.default.priority healthcheck",
		"quiet: healthcheck",
		"web: environment.GONE restart deploy.replicas deploy.resources.reservations deploy.resources.limits.pids ports[0].mode ports[1] ports[2] " +
			"volumes[0] volumes[1].volume volumes[2] healthcheck.start_interval depends_on.db.condition depends_on.db.restart build network_mode privileged unheard",
		`network default "" false: `,
		`network front "theirs" true: ipam`,
		"volume data: driver_opts",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

// A service that is built only has the name that compose gives its image: after the environment, the file, or its folder.
func TestBuiltImages(t *testing.T) {
	for _, test := range []struct{ name, environ, want string }{
		{"", "", "shop-web.a shop"},
		{"name: My $KIND\n", "", "myshop-web.a myshop"},
		{"name: other\n", "env", "env-web.a env"},
	} {
		environ := map[string]string{"KIND": "Shop"}
		if test.environ != "" {
			environ["COMPOSE_PROJECT_NAME"] = test.environ
		}
		p, err := compose.Read(test.name+"services: {web.A: {build: ., user: $COMPOSE_PROJECT_NAME}}", inputs(environ, "", nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Services[0].Image + " " + p.Services[0].User; got != test.want {
			t.Errorf("%q, %q: %s, want %s", test.name, test.environ, got, test.want)
		}
	}
}

// Each mistake is named with its place.
func TestMistakes(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, test := range []struct{ text, want string }{
		{"", "it is empty: it declares no service"},
		{"- a", "line 1: it is a list, not a mapping"},
		{"a: [", "it is not YAML"},
		{"services: &a {web: {image: box, x: *a}}", "line 1: *a is inside of what it stands for"},
		{"services: {web: {image: box, x: " + deep + "}}", "nest more than 100 deep"},
		{bomb(), "more than 4 MiB when its aliases are expanded"},
		{"services: {}", "services declares no service"},
		{"services: 1", "services is a number, not a mapping"},
		{"services: {web: 1}", "services.web is a number, not a mapping"},
		{"services: {'a b': {image: x}}", "services has the name \"a b\"; a name has letters"},
		{"services: {web: }", "services.web has no image"},
		{"services: {web: {image: 'A B'}}", `services.web.image is "A B", which is not the name of an image`},
		{"services: {web: {image: [a]}}", "services.web.image is a list, not a text"},
		{"services: {web: {image: a, extends: b}}", "services.web.extends takes settings of another service"},
		{"include: [a]\nservices: {web: {image: a}}", "include names further files"},
		{"services: {web: {image: a, command: \"sh 'x\"}}", "a quotation in it is not closed"},
		{"services: {web: {image: a, command: {a: b}}}", "services.web.command is a mapping, not a list"},
		{"services: {web: {image: a, environment: {A: [b]}}}", "services.web.environment.A is a list, not a text"},
		{"services: {web: {image: a, env_file: x.env}}", "services.web.env_file cannot be read: x.env"},
		{"services: {web: {image: a, restart: often}}", `services.web.restart is "often", which is none of no, always`},
		{"services: {web: {image: a, cpus: many}}", `services.web.cpus is "many", which is no number like 0.5`},
		{"services: {web: {image: a, cpus: 1e999999999}}", "which is no number like 0.5"},
		{"services: {web: {image: a, mem_limit: much}}", `services.web.mem_limit is "much", which is no size like 512m`},
		{"services: {web: {image: a, mem_limit: 99999999999999p}}", "which is no size like 512m"},
		{"services: {web: {image: a, mem_limit: 2000p}}", "which is no size like 512m"},
		{"services: {web: {image: a, ports: 80}}", "services.web.ports is a number, not a list"},
		{"services: {web: {image: a, ports: ['0:70000']}}", `services.web.ports[0] has the port "70000", which is none from 1 to 65535`},
		{"services: {web: {image: a, ports: ['x:1:1']}}", `has the address "x", which is no IP address`},
		{"services: {web: {image: a, ports: ['1-9:1-2']}}", "has ranges of different lengths"},
		{"services: {web: {image: a, ports: ['1-60000:1-60000']}}", "publishes more than 1000 ports"},
		{"services: {web: {image: a, ports: ['1-600:1-600', '1-600:1-600/udp']}}", "publishes more than 1000 ports"},
		{"services: {web: {image: a, ports: [{published: 1}]}}", "names no port of the container"},
		{"services: {web: {image: a, volumes: ['x:/y']}}", `mounts the volume "x", which the file does not declare`},
		{"services: {web: {image: a, networks: [x]}}", `names the network "x", which the file does not declare`},
		{"services: {web: {image: a, depends_on: [x]}}", `names the service "x", which the file does not declare`},
		{"services: {web: {image: a, healthcheck: {test: [x]}}}", "begins with none of NONE, CMD and CMD-SHELL"},
		{"services: {web: {image: a, healthcheck: {test: x, interval: soon}}}", `services.web.healthcheck.interval is "soon", which is no duration like 30s`},
		{"services: {web: {image: a, healthcheck: {test: x, retries: x}}}", `services.web.healthcheck.retries is "x", not a whole number`},
		{"services: {web: {image: a}}\nnetworks: {a: {internal: perhaps}}", `networks.a.internal is "perhaps", not true or false`},
		{"services: {web: {image: a}}\nvolumes: [a]", "volumes is a list, not a mapping"},
	} {
		_, err := compose.Read(test.text, inputs(nil, "", nil))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: the error is %v, want %q", test.text, err, test.want)
		}
	}
}

// bomb returns a short text whose aliases stand for a long one.
func bomb() string {
	text := "x0: &x0 [aaaaaaaaaa, aaaaaaaaaa]\n"
	for i := 1; i < 30; i++ {
		text += fmt.Sprintf("x%d: &x%d [*x%d, *x%d, *x%d]\n", i, i, i-1, i-1, i-1)
	}
	return text
}

// No text makes Read panic, and an error names what is wrong.
func TestReadNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := composetest.Document().Draw(t, "text")
		p, err := compose.Read(text, inputs(map[string]string{"SET": "x"}, rapid.SampledFrom([]string{"", "A=1\n", "A='", "$"}).Draw(t, ".env"), nil))
		if (p == nil) == (err == nil) || err != nil && err.Error() == "" {
			t.Fatalf("%v, %v:\n%s", p, err, text)
		}
	})
}
