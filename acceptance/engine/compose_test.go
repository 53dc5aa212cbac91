//go:build linux

package engine_test

import (
	"strconv"
	"strings"
	"testing"
)

// composed has the engine and the image of the services of a compose file.
const composed = `vmctl {
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
`

// services is a compose file of a server that is healthy only a while after its start, and of a client that asks it once.
const services = `services:
  web:
    image: demo/box:${TAG}
    command: >-
      sh -c "trap 'exit 0' TERM; echo ${GREETING:-hello} $$HOME >/data/index.html; sleep 1; httpd -p 80 -h /data; touch /up; while :; do sleep 1; done"
    environment: [HOME=/home/web]
    env_file: web.env
    ports: ["127.0.0.1:PORT:80"]
    volumes: ["data:/data"]
    networks: {back: {aliases: [www]}}
    healthcheck: {test: [CMD, test, -e, /up], interval: 1s, retries: 60}
    mem_limit: 32m
    restart: unless-stopped
    labels: [team=one]
    cap_add: [NET_ADMIN]
  client:
    image: demo/box:${TAG}
    command: [sh, -c, "trap 'exit 0' TERM; wget -O /got http://www/ || exit 1; cat /got; while :; do sleep 1; done"]
    networks: [back]
    depends_on: {web: {condition: service_healthy}}
networks:
  back:
volumes:
  data:
`

// The blocks of a compose file are applied to a real engine, and the plan after that is empty.
func TestCompose(t *testing.T) {
	d := sharedDaemon(t)
	p := projectOf(t, d, composed)
	port := strconv.Itoa(d.port(0))
	p.write("compose.yaml", []byte(strings.Replace(services, "PORT", port, 1)))
	p.write(".env", []byte("TAG=1\n"))
	p.write("web.env", []byte("MODE='from a file'\n"))
	out := p.run(0, "import", "--compose=compose.yaml", "--out=shop.vmctl.hcl")
	says(t, out, "Wrote network.back, volume.data, container.client, container.web into shop.vmctl.hcl.", "Settings that no block can say: 2.")
	p.run(0, "validate")
	p.applies()

	web := read[struct {
		State      struct{ Health struct{ Status string } }
		HostConfig struct {
			Memory        int64
			RestartPolicy struct{ Name string }
		}
		Config struct {
			Env    []string
			Labels map[string]string
		}
		Mounts []struct{ Name, Destination string }
	}](d, "/containers/demo.web/json")
	if web.State.Health.Status != "healthy" || web.HostConfig.Memory != 32<<20 || web.HostConfig.RestartPolicy.Name != "unless-stopped" ||
		web.Config.Labels["team"] != "one" || len(web.Mounts) != 1 || web.Mounts[0].Name != "demo.data" || web.Mounts[0].Destination != "/data" {
		t.Errorf("container.web is %+v", web)
	}
	says(t, strings.Join(web.Config.Env, "\n"), "HOME=/home/web", "MODE=from a file")
	if got := p.get("127.0.0.1", port); got != "hello /home/web\n" {
		t.Errorf("its port answers %q", got)
	}
	says(t, d.must("GET", "/containers/demo.client/logs?stdout=1&stderr=1", ""), "hello /home/web")
	p.run(0, "destroy", "--auto-approve")
}
