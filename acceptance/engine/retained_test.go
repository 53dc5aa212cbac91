//go:build linux

package engine_test

import (
	"strings"
	"testing"
)

// What a container of others uses is retained, and the plan names that container. Everything else is removed, and what
// was retained goes once that container is gone.
//
// row E33
func TestRetained(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	d.must("POST", "/containers/create?name=theirs", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"HostConfig":{"Binds":["demo.data:/data"]}}`)

	out := p.run(2, "plan", "--destroy", "--detailed-exitcode")
	if !strings.Contains(out, "1 to destroy; 3 retained") {
		t.Errorf("the plan says\n%s", out)
	}
	out = p.run(6, "destroy", "--auto-approve")
	for _, want := range []string{"retained image.box, volume.data: ", `container "theirs"`, "destroy: retained, because others use it: "} {
		if !strings.Contains(out, want) {
			t.Errorf("destroy does not say %q:\n%s", want, out)
		}
	}
	if got := strings.Join(p.names(), " "); got != "/theirs" {
		t.Errorf("the containers are %s, want /theirs", got)
	}
	d.must("GET", "/volumes/demo.data", "")
	d.must("GET", "/images/demo/box:1/json", "")
	p.run(6, "destroy", "--auto-approve") // nothing has changed

	d.must("DELETE", "/containers/theirs", "")
	p.run(0, "destroy", "--auto-approve")
	if left := strings.TrimSpace(d.must("GET", "/images/json", "")); left != "[]" {
		t.Errorf("images are left: %s", left)
	}
	if left := d.must("GET", "/volumes", ""); strings.Contains(left, "demo.data") {
		t.Errorf("the volume is left: %s", left)
	}
}
