//go:build linux

package engine_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inUse is quick with a network of its own, so that a block of each kind is there.
var inUse = strings.Replace(quick, "  mount {", "  network {\n    network = network.back\n  }\n\n  mount {", 1) + `
network "back" {
  engine = engine.here
}
`

// byHand removes an object as somebody would who knows nothing of vmctl.
func (d *daemon) byHand(kinds ...string) {
	d.t.Helper()
	for _, kind := range kinds {
		d.must("DELETE", map[string]string{
			"container": "/containers/demo.web?force=1", "image": "/images/demo/box:1?force=1", "network": "/networks/demo.back", "volume": "/volumes/demo.data",
		}[kind], "")
	}
}

// Whatever is gone by the time of the step that removes it is removed: whether the step finds that out by its look, or the engine
// answers it so. Nothing is made of it but that.
//
// row E34
func TestRemovalOfWhatIsGone(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.main = strings.Replace(inUse, "SOCKET", x.path, 1)
	p.edit()
	for _, test := range []struct {
		request string // before which it goes
		gone    []string
	}{
		{"DELETE /v1.41/containers/", []string{"container", "image", "network", "volume"}}, // the others are gone when their steps look
		{"DELETE /v1.41/images/", []string{"image"}},
		{"DELETE /v1.41/networks/", []string{"network"}},
		{"DELETE /v1.41/volumes/", []string{"volume"}},
	} {
		p.applies()
		struck := false
		x.arm(test.request, first, func() {
			struck = true
			d.byHand(test.gone...)
		})
		out := p.run(0, "destroy", "--auto-approve")
		if !struck {
			t.Fatalf("there was no request %s:\n%s", test.request, out)
		}
		for _, kind := range test.gone {
			address := map[string]string{"container": "container.web", "image": "image.box", "network": "network.back", "volume": "volume.data"}[kind]
			if is := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(address) + `: removed in \S+ \(was gone already\)$`); !is.MatchString(out) {
				t.Errorf("%s was gone before %s, and the destroy says\n%s", address, test.request, out)
			}
		}
		if out := p.run(0, "state", "list"); strings.Contains(out, ".") {
			t.Errorf("the records are\n%s", out)
		}
		if left := slices.Concat(p.names(), d.ids()); len(left) > 0 {
			t.Errorf("there is still %q", left)
		}
	}
}

// What was removed by hand is made again if a block declares it. If none does any more, its record goes, and the engine is asked
// to change nothing.
//
// row E35
func TestRemovedByHand(t *testing.T) {
	d := sharedDaemon(t)
	p, x := throughProxy(t, d)
	p.main = strings.Replace(inUse, "SOCKET", x.path, 1)
	p.edit()
	p.applies()
	before := p.container()
	d.byHand("container")
	says(t, p.run(2, "plan", "--detailed-exitcode"), "container.web create", "1 to create")
	p.applies()
	if now := p.container(); now.ID == before.ID || now.State.Status != "running" {
		t.Errorf("it was removed by hand, and is %+v, and was %+v", now, before)
	}
	d.byHand("container", "image", "network", "volume")
	says(t, p.run(2, "plan", "--detailed-exitcode"), "container.web create", "image.box create", "network.back create", "volume.data create", "4 to create")
	p.applies()

	p.main = p.main[:strings.Index(p.main, "image \"box\"")]
	p.edit()
	d.byHand("container", "image", "network", "volume")
	says(t, p.run(2, "plan", "--detailed-exitcode"), "container.web forget", "image.box forget", "network.back forget", "volume.data forget")
	x.changed()
	p.applies()
	if n := x.changed(); n > 0 {
		t.Errorf("the engine got %d requests that change something", n)
	}
	if out := strings.TrimSpace(p.run(0, "state", "list")); out != "engine.here" {
		t.Errorf("the records are\n%s", out)
	}
	p.run(0, "destroy", "--auto-approve")
}
