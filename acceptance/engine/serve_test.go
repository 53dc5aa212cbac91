//go:build linux

package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vmctl/internal/process"
)

// served returns the process that serves the engine at a socket of this host.
func served(t *testing.T, endpoint string) []process.Identity {
	t.Helper()
	all, err := process.Host{}.Find(t.Context(), process.HasArgument(strings.TrimPrefix(endpoint, "unix://")))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A process of vmctl serves an engine in a VM on this host. It is made again when it is killed or hangs, and ends with its VM and
// with its engine.
//
// row E58, of an engine in a simulated VM
// row L46, of an engine in a VM
// row E44, of an engine in a VM
func TestServe(t *testing.T) {
	const inVM = `
provider "sim" "host" {}

vm "dev" {
  provider = provider.sim.host
}

output "endpoint" {
  value = engine.here.endpoint
}
`
	p := projectOf(t, sharedDaemon(t), inVM+strings.NewReplacer("host ", "vm    = vm.dev\n  serve = true\n  host ", "SOCKET", "INSIDE").Replace(main))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	p.run(0, "apply", "--auto-approve", "--target=vm.dev")
	ready := func(want string) {
		t.Helper()
		var doc struct {
			Resources []struct {
				Address    string
				State      string
				Conditions []struct{ Type, Status, Reason string }
			}
		}
		if err := json.Unmarshal([]byte(p.run(0, "status", "--json")), &doc); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, r := range doc.Resources {
			got[r.Address] = r.State
			for _, c := range r.Conditions {
				got[r.Address+" "+c.Type] = c.Status
				if c.Type == "engine.ready" && c.Status != "true" && c.Reason == "" {
					t.Error("the engine is not ready, and no reason is given")
				}
			}
		}
		if got["vm.dev"] != "running" || got["engine.here engine.ready"] != want {
			t.Errorf("the conditions are %v, want a VM that runs and an engine that is ready: %s", got, want)
		}
	}
	ready("false")
	root := strings.TrimSpace(p.run(0, "vm", "exec", "dev", "--", "pwd"))
	inside := filepath.Join(root, "s") // the path of a socket has at most 107 bytes
	if err := os.Symlink(p.d.socket(), inside); err != nil {
		t.Fatal(err)
	}
	p.edit("INSIDE", inside)
	p.applies()
	ready("true")
	endpoint := strings.TrimSpace(p.run(0, "output", "endpoint"))
	answers := func() {
		t.Helper()
		t.Setenv("DOCKER_HOST", "") // the test's client is told by --host alone
		if out, ok := docker(t, "--host", endpoint, "ps", "--format", "{{.Names}}"); !ok || out != "demo.web" {
			t.Errorf("docker ps at %q shows %q", endpoint, out)
		}
	}
	answers()
	if out, ok := docker(t, "--host", endpoint, "exec", "demo.web", "sh", "-c", "echo in"); !ok || out != "in" {
		t.Errorf("docker exec shows %q", out)
	}
	about, err := os.Stat(filepath.Dir(strings.TrimPrefix(endpoint, "unix://")))
	if err != nil || about.Mode().Perm() != 0o700 {
		t.Errorf("its socket is in a folder %v, %v", about, err)
	}

	// It is killed: that is found, and healed.
	before := served(t, endpoint)
	if len(before) != 1 {
		t.Fatalf("%d processes serve it", len(before))
	}
	if _, err := (process.Host{}).Force(before[0]); err != nil {
		t.Fatal(err)
	}
	if err := (process.Host{}).Wait(t.Context(), before...); err != nil {
		t.Fatal(err)
	}
	says(t, p.run(2, "plan", "--detailed-exitcode"), "the process that serves it on this host is gone", "serve")
	p.applies()
	answers()

	// Its VM goes down, and up again.
	p.run(0, "vm", "stop", "dev")
	if left := served(t, endpoint); len(left) > 0 {
		t.Errorf("its VM is off, and it is served by %v", left)
	}
	p.run(0, "vm", "start", "dev")
	p.applies()
	answers()

	// A docker context leads there, and needs no more.
	p.edit("serve = true", "docker_context {\n    name = \"vmctl-served\"\n  }")
	p.applies()
	if out, ok := docker(t, "--context", "vmctl-served", "ps", "--format", "{{.Names}}"); !ok || out != "demo.web" {
		t.Errorf("docker ps in the context shows %q", out)
	}
	p.edit("serve = true", "")
	p.applies()
	if left := served(t, endpoint); len(left) > 0 {
		t.Errorf("nobody wants it served, and it is by %v", left)
	}
	p.edit("serve = true", "serve = true")
	p.applies()
	answers()
	p.run(0, "destroy", "--auto-approve")
	if left := served(t, endpoint); len(left) > 0 {
		t.Errorf("it is destroyed, and served by %v", left)
	}
	if _, err := os.Lstat(strings.TrimPrefix(endpoint, "unix://")); !os.IsNotExist(err) {
		t.Errorf("its socket: %v", err)
	}
}
