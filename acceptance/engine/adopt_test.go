//go:build linux

package engine_test

import (
	"strings"
	"testing"
)

// A fresh data directory finds again what bears the marks of the project, and touches nothing else.
//
// row L17, of a container and what it uses
// row E36, of an image of others
func TestAdopt(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.applies()
	before := p.container()
	volume := d.must("GET", "/volumes/demo.data", "")
	d.must("POST", "/containers/create?name=copy", `{"Image":"demo/box:1","Cmd":["sleep","1000"],"Labels":{
		"vmctl.id":"k7m2qd9x4r","vmctl.project":"demo","vmctl.address":"container.web","vmctl.token":"`+p.token()+`","vmctl.name":"demo.web"}}`)
	d.must("POST", "/containers/create?name=theirs", `{"Image":"demo/box:1","Cmd":["sleep","1000"]}`)

	p.home = t.TempDir()
	out := p.run(2, "plan", "--detailed-exitcode")
	if !strings.Contains(out, "4 to adopt") || strings.Contains(out, "to create") {
		t.Errorf("without records the plan says\n%s", out)
	}
	p.applies()
	if now := p.container(); now.ID != before.ID || now.State.Status != "running" {
		t.Errorf("it was adopted, is %+v, and was %+v", now, before)
	}
	if now := d.must("GET", "/volumes/demo.data", ""); now != volume {
		t.Errorf("the volume is %s, and was %s", now, volume)
	}
	if got := strings.Join(p.names(), " "); got != "/copy /demo.web /theirs" {
		t.Errorf("there are %s", got)
	}

	p.edit("32MiB", "48MiB")
	p.applies()
	if now := p.container(); now.ID != before.ID || now.HostConfig.Memory != 48<<20 {
		t.Errorf("another limit of memory made what was adopted %+v", now)
	}
}

// An image of others has the name that ours is to get: it is not replaced, in the plan's time or later.
//
// row E36, of an image of others
func TestForeignImage(t *testing.T) {
	d := sharedDaemon(t)
	p := newProject(t, d)
	p.run(0, "apply", "--auto-approve", "--target=image.box")
	before := d.must("GET", "/images/json", "")

	p.home = t.TempDir()
	p.archive("two")
	out := p.run(6, "apply", "--auto-approve")
	if !strings.Contains(out, "blocked image.box: image docker.io/demo/box:1 is held by ") || !strings.Contains(out, "import: vmctl import image.box docker.io/demo/box:1") {
		t.Errorf("apply says\n%s", out)
	}
	if now := d.must("GET", "/images/json", ""); now != before {
		t.Errorf("the images are %s, and were %s", now, before)
	}
}
