//go:build linux

package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
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
	p.sweepsAfterAKill()

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

// sweepsAfterAKill kills a vmctl that relays into the engine. The next one removes its folder, and leaves that of one that lives.
func (p *project) sweepsAfterAKill() {
	p.t.Helper()
	temp, err := os.MkdirTemp("/tmp", "x")
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(temp); err != nil {
			p.t.Error(err)
		}
	}()
	p.t.Setenv("TMPDIR", temp)
	killed, killedDir := p.relays()
	live, liveDir := p.relays()
	if err := killed.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = killed.Wait() //nolint:errcheck // it was killed
	if _, err := os.Lstat(filepath.Join(killedDir, "s")); err != nil {
		p.t.Errorf("the socket of the killed one is gone already, so nothing is shown: %v", err)
	}
	p.run(0, "engine", "exec", "here", "--", "docker", "ps", "-q")
	if left := p.folders(temp); left != liveDir {
		p.t.Errorf("after the next one there are %s, want that of the one that lives alone, %s", left, liveDir)
	}
	if err := errors.Join(live.stdin.Close(), live.Wait()); err != nil {
		p.t.Errorf("the one that lived ended with %v", err)
	}
	if left := p.folders(temp); left != "" {
		p.t.Errorf("at the end there are %s", left)
	}
}

// relay is a run of engine exec.
type relay struct {
	*exec.Cmd

	stdin io.WriteCloser
}

// relays begins a run of engine exec, which ends with its input, and returns the folder of its socket.
func (p *project) relays() (relay, string) {
	p.t.Helper()
	cmd := p.command("engine", "exec", "here", "--", "sh", "-c", "echo $DOCKER_HOST; cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = stdin.Close() }) //nolint:errcheck // its cat ends with it; it may be closed
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	host, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		p.t.Fatalf("read its DOCKER_HOST: %v", err)
	}
	return relay{cmd, stdin}, filepath.Dir(strings.TrimPrefix(strings.TrimSpace(host), "unix://"))
}

// folders lists the folders of relays.
func (p *project) folders(dir string) string {
	p.t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "vmctl-relay-*"))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.Join(all, " ")
}
