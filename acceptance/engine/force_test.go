//go:build linux

package engine_test

import (
	"strings"
	"testing"
)

// With force an image goes although containers of others use it, and none of them is stopped; another name of it stays. Without,
// which is the default, it is retained, and the container is named.
//
// row C20, of images
func TestForcedImage(t *testing.T) {
	const alone = "\nimage \"box\" {\n  engine  = engine.here\n  ref     = \"demo/box:1\"\n  archive = \"box.tar\"\n}\n"
	d := sharedDaemon(t)
	before, _, _ := strings.Cut(main, "\nimage ")
	p := projectOf(t, d, before+alone)
	p.applies()
	image := d.idOf("demo/box:1")
	d.must("POST", "/containers/create?name=stopped", `{"Image":"demo/box:1","Cmd":["sleep","1000"]}`)

	p.main = before // its block goes
	p.edit()
	if out := p.run(6, "apply", "--auto-approve"); !strings.Contains(out, "retained image.box: ") || !strings.Contains(out, `container "`) || d.idOf("demo/box:1") != image {
		t.Errorf("without force, apply says\n%s", out)
	}

	p.main = before + strings.Replace(alone, "\n}", "\n  force   = true\n}", 1)
	p.edit()
	p.applies()
	p.main = before
	p.edit()
	d.must("POST", "/images/"+image+"/tag?repo=demo/theirs&tag=2", "")
	if out := p.run(2, "plan", "--detailed-exitcode", "--verbose"); !strings.Contains(out, "force") || strings.Contains(out, "retained") {
		t.Errorf("with force, the plan says\n%s", out)
	}
	p.run(0, "apply", "--auto-approve")
	if got := strings.Join(d.tags(), " "); got != "demo/theirs:2" {
		t.Errorf("the names are %s, want demo/theirs:2: only the image's own name goes", got)
	}

	d.empty()
	p.main = before + strings.Replace(alone, "\n}", "\n  force   = true\n}", 1)
	p.edit()
	p.applies()
	d.must("POST", "/containers/create?name=runs", `{"Image":"demo/box:1","Cmd":["sleep","1000"]}`)
	d.must("POST", "/containers/runs/start", "")
	runs := read[container](d, "/containers/runs/json")
	out := p.run(0, "destroy", "--auto-approve")
	if now := read[container](d, "/containers/runs/json"); now.ID != runs.ID || now.State.Status != "running" {
		t.Errorf("the container of others is %+v, and was %+v", now, runs)
	}
	if got := d.tags(); strings.Contains(strings.Join(got, " "), "demo/box") || !strings.Contains(out, "container runs uses it, and stays as it is") {
		t.Errorf("the names are %v, and destroy says\n%s", got, out)
	}
}
