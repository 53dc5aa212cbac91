//go:build linux

package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts find the engine by its endpoint.
//
// row E58, of an engine on this host
func TestEndpoint(t *testing.T) {
	p := projectOf(t, sharedDaemon(t), main+"output \"endpoint\" {\n  value = engine.here.endpoint\n}\n")
	p.applies()
	endpoint := strings.TrimSpace(p.run(0, "output", "endpoint"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	docker := exec.CommandContext(ctx, "/usr/bin/docker", "ps", "--format", "{{.Names}}") // the engine's own package has it
	docker.Env = append(os.Environ(), "DOCKER_HOST="+endpoint, "DOCKER_CONFIG="+t.TempDir())
	out, err := docker.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "demo.web" {
		t.Errorf("docker ps at %q shows %q, %v", endpoint, out, err)
	}
	p.run(0, "destroy", "--auto-approve")
}

// The client of this host talks to an engine in a VM, several of its commands at once, and the VM is busy meanwhile.
//
// row E58, of an engine in a simulated VM
func TestExec(t *testing.T) {
	const inVM = `
provider "sim" "host" {}

vm "dev" {
  provider = provider.sim.host
}
`
	p := projectOf(t, sharedDaemon(t), inVM+strings.NewReplacer("host ", "vm   = vm.dev\n  host ", "SOCKET", "INSIDE").Replace(main))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("DOCKER_CONTEXT", "another") // the engine is told by vmctl alone
	t.Setenv("DOCKER_TLS_VERIFY", "1")
	p.run(0, "apply", "--auto-approve", "--target=vm.dev")
	root := strings.TrimSpace(p.run(0, "vm", "exec", "dev", "--", "pwd"))
	inside := filepath.Join(root, "s") // the path of a socket has at most 107 bytes
	if err := os.Symlink(p.d.socket(), inside); err != nil {
		t.Fatal(err)
	}
	p.edit("INSIDE", inside)
	p.applies()
	if out := p.run(0, "engine", "exec", "here", "--", "docker", "ps", "--format", "{{.Names}}"); strings.TrimSpace(out) != "demo.web" {
		t.Errorf("docker ps shows %q", out)
	}
	many := "for i in 1 2 3 4 5 6 7 8; do docker ps -q & done; wait; docker exec -i demo.web sh -c 'echo in; exit 3'"
	if out := p.run(3, "engine", "exec", "here", "--", "sh", "-c", many); strings.Count(out, "\n") != 9 || !strings.Contains(out, "in\n") {
		t.Errorf("several commands show %q", out)
	}
	var doc struct{ Stdout string }
	out := p.run(0, "engine", "exec", "--json", "here", "--", "sh", "-c", "s=${DOCKER_HOST#unix://}; printf '%s' $s; test -S $s && stat -c ' %a' $(dirname $s)")
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	socket, mode, _ := strings.Cut(doc.Stdout, " ")
	if _, err := os.Lstat(filepath.Dir(socket)); mode != "700\n" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its socket was in a folder of mode %q, and is still there: %v", mode, err)
	}
	p.run(255, "engine", "exec", "here", "--", "no-such-program")

	// The VM goes down: its container is stopped before, and not started into it.
	p.run(0, "vm", "stop", "dev")
	if now := p.container().State.Status; now != "exited" {
		t.Errorf("its VM is off, and the container is %s", now)
	}
	p.run(0, "vm", "start", "dev")
	p.applies()
	if now := p.container().State.Status; now != "running" {
		t.Errorf("its VM runs again, and the container is %s", now)
	}
	p.run(0, "destroy", "--auto-approve")
}
