//go:build linux

package engine_test

import (
	"os"
	"path/filepath"
	"testing"
)

// started is when container.web was started last.
func (p *project) started() string {
	p.t.Helper()
	return read[struct{ State struct{ StartedAt string } }](p.d, "/containers/demo.web/json").State.StartedAt
}

// The containers of an image stay up until its new archive is loaded: an archive that the engine does not take, and a run that is killed
// once it was loaded, take nothing down.
func TestArchiveIsLoadedFirst(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.applies()
	first, since, image := p.container(), p.started(), d.idOf("demo/box:1")
	unmoved := func(when string) {
		t.Helper()
		if now := p.container(); now.ID != first.ID || now.State.Status != "running" || p.started() != since {
			t.Errorf("%s it is %+v, and was %+v", when, now, first)
		}
	}

	p.archive("two")
	text, err := os.ReadFile(filepath.Join(p.dir, "box.tar"))
	if err != nil {
		t.Fatal(err)
	}
	p.write("box.tar", text[:len(text)/2])
	p.run(1, "apply", "--auto-approve")
	unmoved("with an archive that is cut")
	if now := d.idOf("demo/box:1"); now != image {
		t.Errorf("its name leads to %s, and led to %s", now, image)
	}

	p.write("box.tar", text)
	p.runKilled(x, "/images/load")
	unmoved("killed once the archive was loaded")
	p.applies()
	if now := p.container(); now.ID == first.ID || now.Image == image || now.Image != d.idOf("demo/box:1") || now.State.Status != "running" {
		t.Errorf("after one more apply it is %+v, and was %+v", now, first)
	}

	p.archive("three")
	second := p.container()
	p.applies()
	if now := p.container(); now.ID == second.ID || now.Image != d.idOf("demo/box:1") || now.Image == second.Image {
		t.Errorf("with another archive it is %+v, and was %+v", now, second)
	}
	p.run(0, "destroy", "--auto-approve")
	if got := append(d.ids(), d.tags()...); len(got) > 0 {
		t.Errorf("destroy left %q", got)
	}
}
