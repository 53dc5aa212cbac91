//go:build linux

package engine_test

import (
	"context"
	"os"
	"os/exec"
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
