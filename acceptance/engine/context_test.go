//go:build linux

package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docker runs Docker's client with the configuration of the test, and returns its output and whether it ended well.
func docker(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/docker", args...) // the engine's own package has it
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "DOCKER_HOST=") || strings.HasPrefix(entry, "DOCKER_CONTEXT=")
	})
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err == nil
}

// Docker's client of this host finds a real engine by its context, which is the current one only as long as no other one that
// leads to an engine is, and which ends with the engine's block.
//
// row E44, with Docker's own client
func TestDockerContext(t *testing.T) {
	d := sharedDaemon(t)
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	const named = "  docker_context {\n    name = \"vmctl-test\"\n  }\n"
	p := projectOf(t, d, strings.Replace(main, "host = ", named+"  host = ", 1))
	current := func(want string) {
		t.Helper()
		got, _ := docker(t, "context", "ls", "--format", "{{if .Current}}current is {{.Name}}{{end}}")
		if strings.TrimSpace(got) != "current is "+want {
			t.Errorf("the contexts say %q, want %q", got, want)
		}
	}

	// The current context leads to a socket that is not there.
	for _, args := range [][]string{
		{"context", "create", "theirs", "--docker", "host=unix://" + filepath.Join(config, "none")}, {"context", "use", "theirs"},
	} {
		if out, ok := docker(t, args...); !ok {
			t.Fatalf("docker %v: %s", args, out)
		}
	}
	out := p.run(0, "apply", "--auto-approve")
	says(t, out, "in place of theirs: unix://"+filepath.Join(config, "none")+" does not exist")
	p.run(0, "plan", "--detailed-exitcode")
	current("vmctl-test")
	if got, ok := docker(t, "ps", "--format", "{{.Names}}"); !ok || got != "demo.web" {
		t.Errorf("docker ps shows %q", got)
	}

	// Somebody removes it: the plan has it made again.
	if out, ok := docker(t, "context", "rm", "-f", "vmctl-test"); !ok {
		t.Fatal(out)
	}
	if out := p.run(2, "plan", "--detailed-exitcode"); !strings.Contains(out, "set_context") {
		t.Errorf("its context is gone, and the plan says\n%s", out)
	}
	p.applies()
	if got, ok := docker(t, "--context", "vmctl-test", "ps", "--format", "{{.Names}}"); !ok || got != "demo.web" {
		t.Errorf("docker ps in the context shows %q", got)
	}

	// The user chooses one that leads to an engine.
	for _, args := range [][]string{
		{"context", "create", "sound", "--docker", "host=unix://" + d.socket() + "2"}, {"context", "use", "sound"},
	} {
		if out, ok := docker(t, args...); !ok {
			t.Fatalf("docker %v: %s", args, out)
		}
	}
	if err := os.Symlink(d.socket(), d.socket()+"2"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(d.socket() + "2") }) //nolint:errcheck // the folder goes, too
	p.edit("vmctl-test", "vmctl-again")
	p.applies()
	current("sound")
	if got, _ := docker(t, "context", "ls", "--format", "{{.Name}}"); strings.Contains(got, "vmctl-test") || !strings.Contains(got, "vmctl-again") {
		t.Errorf("with another name, the contexts are\n%s", got)
	}

	// The engine is let go while its context is the current one.
	if out, ok := docker(t, "context", "use", "vmctl-again"); !ok {
		t.Fatal(out)
	}
	says(t, p.run(0, "destroy", "--auto-approve"), "docker context vmctl-again is removed")
	current("default")
	if got, ok := docker(t, "context", "ls", "--format", "{{.Name}}"); !ok || strings.Join(strings.Fields(got), " ") != "default sound theirs" {
		t.Errorf("after the destroy, the contexts are\n%s", got)
	}
}

// A name that a context of others has fails the step.
//
// row E44, of what cannot be made
func TestDockerContextRefused(t *testing.T) {
	d := sharedDaemon(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	const named = "  docker_context {\n    name = \"taken\"\n  }\n"
	p := projectOf(t, d, strings.Replace(main, "host = ", named+"  host = ", 1))
	if out, ok := docker(t, "context", "create", "taken", "--docker", "host=unix:///theirs"); !ok {
		t.Fatal(out)
	}
	says(t, p.run(1, "apply", "--auto-approve"), `docker context "taken" exists, and engine.here did not make it`, "docker context rm taken")
	if out, ok := docker(t, "context", "inspect", "taken", "--format", "{{.Endpoints.docker.Host}}"); !ok || out != "unix:///theirs" {
		t.Errorf("the context of others leads to %q", out)
	}
	p.edit("taken", "free")
	p.applies()
}
